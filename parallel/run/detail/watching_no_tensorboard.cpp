#include "muster/core/base/error.h"
#include "muster/parallel/run/detail/watching.h"

namespace muster::detail {

bool tensorBoardBuilt() {
  return false;
}

std::unique_ptr<Watcher> tensorBoardWatcher(const WatchOptions&, std::shared_ptr<const EvaluationListener>) {
  throw InvalidArgument(kNoTensorBoard);
}

}  // namespace muster::detail
