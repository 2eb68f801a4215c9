#include "examples/support/watching.h"
#include "muster/core/base/error.h"

namespace example {

bool tensorBoardBuilt() {
  return false;
}

std::unique_ptr<Watcher> tensorBoardWatcher(const WatchOptions&,
                                            std::shared_ptr<const muster::EvaluationListener>) {
  throw muster::InvalidArgument(kNoTensorBoard);
}

}  // namespace example
