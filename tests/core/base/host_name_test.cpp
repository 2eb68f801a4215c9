#include "muster/core/base/host_name.h"

#include <sys/utsname.h>

#include "tests/support/test.h"

using namespace muster;

TEST_CASE("a machine's name is the kernel's node name") {
  utsname kernel{};
  REQUIRE(uname(&kernel) == 0);
  CHECK(hostName() == kernel.nodename);
}
