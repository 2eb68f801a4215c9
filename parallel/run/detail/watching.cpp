#include "muster/parallel/run/detail/watching.h"

#include <fmt/format.h>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"

namespace muster::detail {

Watching::Watching(const WatchOptions& options, std::shared_ptr<const EvaluationListener> tests) {
  if (options.page || options.still || !options.curves.empty())
    watchers_.push_back(pageWatcher(options, tests));
  if (!options.tensorBoard.empty()) watchers_.push_back(tensorBoardWatcher(options, std::move(tests)));
}

void Watching::addTo(Listeners& all) const {
  for (const auto& watcher : watchers_)
    for (auto& listener : watcher->listeners()) all.push_back(std::move(listener));
}

void Watching::describe(std::string_view plan, std::string_view network) const {
  for (const auto& watcher : watchers_) {
    watcher->text("plan", plan);
    watcher->text("network", network);
  }
}

void Watching::options(const std::vector<HyperParameter>& options, const std::vector<std::string>& results,
                       std::string_view group) const {
  for (const auto& watcher : watchers_) watcher->options(options, results, group);
}

void Watching::result(std::string_view name, double value) const {
  for (const auto& watcher : watchers_) watcher->result(name, value);
}

void Watching::during(const std::function<void()>& train) const {
  try {
    train();
  } catch (...) {
    const auto failure = std::current_exception();
    for (const auto& watcher : watchers_) try {
        watcher->failed(failure);
      } catch (...) {
        logWarning("what ended the training early cannot be shown: {}",
                   muster::describe(std::current_exception()));
      }
    std::rethrow_exception(failure);
  }
}

std::string Watching::still(const std::string& document) const {
  for (const auto& watcher : watchers_)
    if (auto page = watcher->still(document); !page.empty()) return page;
  return {};
}

}  // namespace muster::detail
