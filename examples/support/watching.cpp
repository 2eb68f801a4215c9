#include "examples/support/watching.h"

namespace example {

void WatchOptions::describe(CommandLine& line, bool withPage) {
  line.group("Watching");
  line.add(
      "tensorboard", tensorBoard, "DIR",
      "write scores, times, histograms, plan and options there for TensorBoard: a directory for each run");
  if (!withPage) return;
  line.flag("page", page,
            "serve a page with curves, layers and plan to browsers of this machine, and print its address");
  line.add("page-port", pagePort, "N", "of the page; 0: any that is free", between(0, 65535));
}

void WatchOptions::check(const CommandLine& line) {
  if (!line.said("page")) line.refuse({"page-port"}, "needs --page");
}

void WatchOptions::addTo(Paths& paths) const {
  paths.writesInto("--tensorboard", tensorBoard);
}

Watching::Watching(const WatchOptions& options, std::shared_ptr<const muster::EvaluationListener> tests) {
  if (options.page) watchers_.push_back(pageWatcher(options.pagePort, tests));
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
