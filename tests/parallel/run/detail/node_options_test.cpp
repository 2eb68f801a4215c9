#include "muster/parallel/run/detail/node_options.h"

#include <fmt/format.h>

#include "tests/support/environment.h"
#include "tests/support/thrown.h"

namespace muster::detail {
namespace {

using test::Environment;

TEST_CASE("variables of nodes are numbers in their ranges") {
  for (const std::string name : {"MUSTER_NODE", "MUSTER_NODES", "MUSTER_MIN_NODES", "MUSTER_SILENCE"}) {
    const Environment environment(name, "2x");
    CHECK_REFUSED(NodeOptions(), name + " must be a number, got \"2x\"");
  }
  for (const std::string name : {"MUSTER_NODES", "MUSTER_MIN_NODES"})
    for (const std::string value : {"0", "-2", "1025"}) {
      const Environment environment(name, value);
      CHECK_REFUSED(NodeOptions(), fmt::format("{} must be between 1 and 1024, got {}", name, value));
    }
  for (const std::string value : {"0", "2000000"}) {
    const Environment environment("OMPI_COMM_WORLD_SIZE", value);
    CHECK_REFUSED(NodeOptions().count(),
                  fmt::format("the number of launched processes must be between 1 and 1024, got {}", value));
  }
  const Environment nodes("MUSTER_NODES", "1024"), least("MUSTER_MIN_NODES", "3"), store("MUSTER_STORE", "s");
  CHECK(NodeOptions().nodes == 1024);
  CHECK(NodeOptions().count() == 3);
}

}  // namespace
}  // namespace muster::detail
