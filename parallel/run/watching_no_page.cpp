#include "muster/core/base/error.h"
#include "muster/parallel/run/watching.h"

namespace muster {

bool pagesBuilt() {
  return false;
}

std::unique_ptr<Watcher> pageWatcher(const WatchOptions&, std::shared_ptr<const EvaluationListener>) {
  throw InvalidArgument(kNoPage);
}

}  // namespace muster
