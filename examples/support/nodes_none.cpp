#include <cstdlib>
#include <string>

#include "examples/support/nodes.h"
#include "muster/core/base/error.h"

namespace example {

muster::Nodes launchedNodes() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* const processes = std::getenv(name);
    muster::require(
        processes == nullptr || std::string(processes) == "1",
        "a launcher has started {} processes, but this program was built without MPI; `./run nodes` "
        "installs it",
        processes ? processes : "");
  }
  return {};
}

}  // namespace example
