#include "muster/core/listeners/watch_listener.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/base/mutex.h"
#include "muster/core/listeners/score_curve.h"
#include "muster/core/listeners/worker_rows.h"

namespace muster {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr Clock::duration kRowsInterval = 1s;
constexpr int kCurveRows = 6, kLeastCurveRows = 3, kWidestCurve = 100;

std::string_view inEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

/// Decided by the locale variables; the Linux console has no braille.
bool environmentHasBraille() {
  for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (const auto value = inEnvironment(name); !value.empty())
      return (value.ends_with("UTF-8") || value.ends_with("utf8")) && inEnvironment("TERM") != "linux";
  return false;
}

}  // namespace

struct WatchListener::State {
  explicit State(WatchListenerOptions given)
      : options(std::move(given)),
        colour(options.colour.value_or(inEnvironment("NO_COLOR").empty())),
        braille(options.braille.value_or(environmentHasBraille())) {}

  Clock::time_point now() const { return options.terminal.now ? options.terminal.now() : Clock::now(); }

  /// Counts the time since the last call, or since the epoch began, as training time.
  void countTime() {
    const auto time = now();
    trained += time - mark;
    mark = time;
  }

  /// Reads the workers' times and scores since the last call.
  void readWorkers(Trainer& trainer) {
    const auto report = performanceBetween(before, trainer.workerTimes(), trained);
    if (report.examples() == 0) return;  // no round has ended since
    const Lock lock(mutex);
    rows.resize(report.workers.size());
    scores.resize(rows.size());
    for (std::size_t w = 0; w < rows.size(); ++w) {
      rows[w].samplesPerSecond = report.samplesPerSecond(report.workers[w]);
      rows[w].shares = PerformanceReport::shares(report.workers[w]);
      if (auto& [sum, examples] = scores[w]; examples > 0) {
        rows[w].score = sum / static_cast<double>(examples);
        scores[w] = {};
      }
    }
    before = trainer.workerTimes();
    trained = {};
  }

  std::string draw(int columns, int height) const {
    const int left = height - static_cast<int>(rows.size()) - 1;
    const int curveRows = std::min(left, kCurveRows);
    std::string text = workerRows(rows, columns, height, colour);
    if (curveRows < kLeastCurveRows) return text;
    const auto drawn = curve.draw(std::min(columns, kWidestCurve), curveRows, braille);
    return drawn.empty() ? text : text + (text.empty() ? "" : "\n") + drawn;
  }

  WatchListenerOptions options;
  const bool colour, braille;
  ScoreCurve curve;
  std::vector<WorkerRow> rows;  // [worker], as drawn
  std::vector<WorkerTimes> before;
  Clock::time_point mark;      // end of the time counted so far
  Clock::duration trained{0};  // since the last readWorkers

  Mutex mutex;
  std::vector<std::pair<double, std::int64_t>> scores MUSTER_GUARDED_BY(mutex);  // [worker] sum, examples
};

class WatchListener::Workers final : public Listener {
 public:
  explicit Workers(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ListenerScope scope() const override { return ListenerScope::Worker; }
  void onIteration(const IterationEvent& event) override {
    const auto worker = static_cast<std::size_t>(event.worker);
    const Lock lock(state_->mutex);
    if (worker >= state_->scores.size()) state_->scores.resize(worker + 1);
    auto& [sum, examples] = state_->scores[worker];
    sum += event.score * static_cast<double>(event.examples);
    examples += event.examples;
  }

 private:
  std::shared_ptr<State> state_;
};

WatchListener::WatchListener(WatchListenerOptions options)
    : state_(std::make_shared<State>(std::move(options))),
      progress_({.lastEpoch = state_->options.lastEpoch,
                 .terminal = state_->options.terminal,
                 .below = [state = state_](int columns, int rows) { return state->draw(columns, rows); }}) {}

WatchListener::~WatchListener() = default;

std::shared_ptr<Listener> WatchListener::workers() {
  return std::make_shared<Workers>(state_);
}

void WatchListener::onFitStart(const FitEvent& event) {
  state_->before.clear();
  state_->trained = {};
  progress_.onFitStart(event);
}

void WatchListener::onEpochStart(const EpochEvent& event) {
  state_->mark = state_->now();  // the listeners' work between epochs is not training
  progress_.onEpochStart(event);
}

void WatchListener::onMerge(const MergeEvent& event) {
  state_->curve.add(event.score, event.examples);
  state_->countTime();
  if (state_->trained >= kRowsInterval) state_->readWorkers(event.trainer);
  progress_.onMerge(event);
}

void WatchListener::onEpochEnd(const EpochEvent& event) {
  progress_.onEpochEnd(event);
}

void WatchListener::onFitEnd(Trainer& trainer) {
  progress_.onFitEnd(trainer);
}

}  // namespace muster
