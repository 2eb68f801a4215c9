#include "examples/support/watching.h"

namespace example {

void WatchOptions::describe(CommandLine& line) {
  line.group("Watching");
  line.add(
      "tensorboard", tensorBoard, "DIR",
      "write scores, times, histograms, plan and options there for TensorBoard: a directory for each run");
}

void WatchOptions::addTo(Paths& paths) const {
  paths.writesInto("--tensorboard", tensorBoard);
}

Watching::Watching(const WatchOptions& options, std::shared_ptr<const muster::EvaluationListener> tests) {
  if (!options.tensorBoard.empty())
    watchers_.push_back(tensorBoardWatcher(options.tensorBoard, std::move(tests)));
}

void Watching::addTo(muster::Listeners& all) const {
  for (const auto& watcher : watchers_)
    for (auto& listener : watcher->listeners()) all.push_back(std::move(listener));
}

void Watching::describe(std::string_view plan, std::string_view network) const {
  for (const auto& watcher : watchers_) {
    watcher->text("plan", plan);
    watcher->text("network", network);
  }
}

void Watching::options(const std::vector<muster::HyperParameter>& options,
                       const std::vector<std::string>& results, std::string_view group) const {
  for (const auto& watcher : watchers_) watcher->options(options, results, group);
}

void Watching::result(std::string_view name, double value) const {
  for (const auto& watcher : watchers_) watcher->result(name, value);
}

}  // namespace example
