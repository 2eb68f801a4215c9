#include <fmt/format.h>

#include "examples/support/pages.h"
#include "examples/support/watching.h"
#include "muster/core/base/error.h"

namespace example {

std::unique_ptr<Watcher> pageWatcher(const WatchOptions& options,
                                     std::shared_ptr<const muster::EvaluationListener>) {
  if (!options.page && options.curves.empty()) return nullptr;
  throw muster::InvalidArgument(fmt::format("--{}: {}", options.page ? "page" : "curves", kNoPage));
}

}  // namespace example
