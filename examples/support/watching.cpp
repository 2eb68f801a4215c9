#include "examples/support/watching.h"

#include <fmt/format.h>

#include "examples/support/pages.h"
#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/listeners/progress_listener.h"
#include "muster/core/listeners/watch_listener.h"

namespace example {

void WatchOptions::describe(CommandLine& line, bool live) {
  line.group("Watching");
  line.add(
      "tensorboard", tensorBoard, "DIR",
      "write scores, times, histograms, plan and options there for TensorBoard: a directory for each run");
  if (!live) return;
  line.flag("watch", terminal, "draw a row for each worker and the curve of the score in the terminal");
  line.flag("page", page,
            "serve a page with curves, layers and plan to browsers of this machine, and print its address");
  line.add("page-port", pagePort, "N", "of the page; 0: any that is free", between(0, 65535));
  line.add("curves", curves, "FILE",
           "write the curves there while they grow, as runs/averaging/seed-1.curves.jsonl: muster page runs "
           "shows all runs of a directory");
  line.add("group", group, "NAME",
           "of the run in --curves: the page draws the mean of the runs of a group; without it each run is a "
           "group");
}

void WatchOptions::check(const CommandLine& line) {
  if (!line.said("page")) line.refuse({"page-port"}, "needs --page");
  if (!line.said("curves")) line.refuse({"group"}, "needs --curves");
  if (line.said("quiet")) line.refuse({"watch"}, "shows what --quiet leaves out");
  requireBuilt(line);
}

void WatchOptions::requireBuilt(const CommandLine& line) {
  if (!pagesBuilt()) line.refuse({"page", "curves", "report"}, fmt::format("cannot be used: {}", kNoPage));
  if (!tensorBoardBuilt()) line.refuse({"tensorboard"}, fmt::format("cannot be used: {}", kNoTensorBoard));
}

void WatchOptions::addProgress(muster::Listeners& all, std::optional<std::int64_t> lastEpoch) const {
  if (!terminal) {
    all.push_back(
        std::make_shared<muster::ProgressListener>(muster::ProgressOptions{.lastEpoch = lastEpoch}));
    return;
  }
  const auto watch =
      std::make_shared<muster::WatchListener>(muster::WatchListenerOptions{.lastEpoch = lastEpoch});
  all.insert(all.end(), {watch, watch->workers()});
}

void WatchOptions::addTo(Paths& paths) const {
  paths.writesInto("--tensorboard", tensorBoard);
  if (!curves.empty())
    paths.writesInto("--curves", curves.has_parent_path() ? curves.parent_path() : ".",
                     {curves.filename().string()});
}

Watching::Watching(const WatchOptions& options, std::shared_ptr<const muster::EvaluationListener> tests) {
  if (options.page || options.still || !options.curves.empty())
    watchers_.push_back(pageWatcher(options, tests));
  if (!options.tensorBoard.empty()) watchers_.push_back(tensorBoardWatcher(options, std::move(tests)));
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

void Watching::during(const std::function<void()>& train) const {
  try {
    train();
  } catch (...) {
    const auto failure = std::current_exception();
    for (const auto& watcher : watchers_) try {
        watcher->failed(failure);
      } catch (...) {
        muster::logWarning("what ended the training early cannot be shown: {}",
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

}  // namespace example
