#include "muster/core/base/error.h"
#include "muster/parallel/run/detail/watching.h"

namespace muster::detail {

bool pagesBuilt() {
  return false;
}

std::unique_ptr<Watcher> pageWatcher(const WatchOptions&, std::shared_ptr<const EvaluationListener>) {
  throw InvalidArgument(kNoPage);
}

}  // namespace muster::detail
