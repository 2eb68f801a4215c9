// A training over three network namespaces: one cable is cut, and the side with the lease continues.
#include <doctest/doctest.h>

#include "tests/parallel/nodes/node_processes/no_namespaces.h"
#include "tests/support/environment.h"
#include "tests/support/temporary_directory.h"

using namespace muster::test;
using namespace std::chrono_literals;

namespace {

/// @param store  "": a directory that all processes share, as over a second network.
void checkCut(const std::string& store, const std::string& why) {
  const TemporaryDirectory folder;
  const Environment interface("MUSTER_INTERFACE", "eth0");
  Process nodes({MUSTER_NAMESPACES, "3", "none", MUSTER_CUT_CABLE, folder.path().string(), store,
                 MUSTER_ELASTIC_NODE, "averaging", "1", "2", "6", "20", "well", "0"});
  CHECK(nodes.wait(300s) == 3);  // status of the disconnected node
  CHECK(std::filesystem::exists(folder / "cut"));
  const auto left = [&](const std::string& name) { return readFile(folder / name); };
  for (const std::string side : {"0", "1"}) {
    CAPTURE(side);
    CHECK(left("problem-" + side) == "");
    CHECK(left("log-" + side).find(" of 2, from iteration") != std::string::npos);
  }
  CHECK(left("bits-0") == left("bits-1"));
  CHECK(left("bits-0") != "");
  const auto problem = left("problem-2");
  CAPTURE(problem);
  CHECK(problem.starts_with("the training over elastic nodes has failed: "));
  CHECK(problem.find(why) != std::string::npos);
  CHECK(left("bits-2") != left("bits-0"));
}

}  // namespace

TEST_CASE("after a cut cable the two nodes that reach each other continue, and the third ends") {
  if (noNamespaces()) return;
  checkCut("", "the other nodes continue without this one");
}

TEST_CASE("after a cut cable that also leads to the store, two nodes continue and the third ends") {
#ifdef MUSTER_REDIS_SERVER
  if (noNamespaces()) return;
  const Environment server("MUSTER_REDIS_SERVER", MUSTER_REDIS_SERVER);
  checkCut("redis://10.77.0.1/cable", "the store redis://10.77.0.1:6379/cable");
#else
  skip("there is no hiredis, or no redis-server");
#endif
}
