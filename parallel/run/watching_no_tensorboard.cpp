#include "muster/core/base/error.h"
#include "muster/parallel/run/watching.h"

namespace muster {

bool tensorBoardBuilt() {
  return false;
}

std::unique_ptr<Watcher> tensorBoardWatcher(const WatchOptions&, std::shared_ptr<const EvaluationListener>) {
  throw InvalidArgument(kNoTensorBoard);
}

}  // namespace muster
