#include "examples/support/watching.h"
#include "muster/core/base/error.h"

namespace example {

std::unique_ptr<Watcher> pageWatcher(int, std::shared_ptr<const muster::EvaluationListener>) {
  throw muster::InvalidArgument(
      "--page: this program was built without the page, as dygraphs was not found; install libjs-dygraphs "
      "and build it again");
}

}  // namespace example
