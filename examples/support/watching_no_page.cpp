#include "examples/support/pages.h"
#include "examples/support/watching.h"
#include "muster/core/base/error.h"

namespace example {

std::unique_ptr<Watcher> pageWatcher(const WatchOptions&, std::shared_ptr<const muster::EvaluationListener>) {
  throw muster::InvalidArgument(kNoPage);
}

}  // namespace example
