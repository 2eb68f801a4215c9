#include "muster/core/base/process_name.h"

#include "tests/support/test.h"

using namespace muster;

TEST_CASE("a log line begins with the name of the program and of the process, if it has one") {
  CHECK(lineStart("muster") == "muster: ");
  setProcessName("node 1 (hosta)");
  CHECK(lineStart("muster") == "muster: node 1 (hosta): ");
  CHECK(lineStart("muster") == "muster: node 1 (hosta): ");
  setProcessName("");
  CHECK(lineStart("muster") == "muster: ");
}
