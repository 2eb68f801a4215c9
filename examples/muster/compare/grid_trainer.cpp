#include "examples/muster/compare/grid_trainer.h"

#include <fmt/format.h>

#include <utility>

#include "muster/core/base/number_text.h"

namespace comparing {
namespace {

using muster::kTuningSeed;

std::string lineOf(const muster::RunRecord& run) {
  if (run.failed()) return "diverged";
  const auto metric = muster::ComparisonMetric::named(run.metric);
  const auto score = run.on == "test"
                         ? fmt::format("{} {:.{}f}{}", metric.name, run.end().score * metric.factor,
                                       metric.decimals, metric.unit)
                         : fmt::format("validation loss {:.4g}", run.end().loss);
  return fmt::format("{} after {} samples in {} s", score,
                     muster::groupedNumber(static_cast<double>(run.end().samples)),
                     muster::secondsDigits(run.end().seconds));
}

}  // namespace

GridTrainer::GridTrainer(GridSession& session, muster::Comparison& comparison, std::int64_t samplesPerRun,
                         std::stop_token stop)
    : s_(session),
      c_(comparison),
      stop_(std::move(stop)),
      progress_(planOf(session, comparison, samplesPerRun)) {}

bool GridTrainer::run() {
  const auto arms = s_.grid().arms.size();
  for (std::size_t arm = 0; arm < arms; ++arm)
    for (const auto& choice : s_.choices(arm))
      if (!train(arm, s_.tuningSets(arm, choice), kTuningSeed, choice.text)) return false;
  // All arms with one seed before the next seed: then finished runs are comparable at any time.
  for (const auto seed : s_.grid().seeds)
    for (std::size_t arm = 0; arm < arms; ++arm)
      if (!train(arm, s_.chosenSets(arm).value(), seed, fmt::format("seed {}", seed))) return false;
  return true;
}

GridProgressOptions GridTrainer::planOf(GridSession& s, const muster::Comparison& c,
                                        std::int64_t samplesPerRun) {
  std::size_t runs = c.planned(), finished = c.finished();
  for (std::size_t arm = 0; arm < s.grid().arms.size(); ++arm)
    for (const auto& choice : s.choices(arm)) {
      ++runs;
      if (s.result(s.tuningSets(arm, choice), kTuningSeed) != nullptr) ++finished;
    }
  return {.runs = runs, .finished = finished, .samplesPerRun = samplesPerRun};
}

bool GridTrainer::train(std::size_t arm, const std::vector<std::string>& sets, std::int64_t seed,
                        const std::string& which) {
  if (s_.result(sets, seed) != nullptr) return true;
  if (stop_.stop_requested()) return false;
  const Cell cell = s_.cell(arm, sets, seed);
  if (!std::exchange(warm_, true)) warmUp(cell);
  const auto name = fmt::format("{}, {}", cell.arm, which);
  progress_.begin(name);
  const auto run = trainCell(
      cell, [&](std::int64_t samples) { progress_.advance(samples); }, stop_);
  if (!run) return false;
  s_.results().add(*run);
  s_.refresh(c_);
  c_.writeReport(s_.out());
  progress_.finish(fmt::format("{}: {}", name, lineOf(*run)));
  return true;
}

void GridTrainer::warmUp(Cell cell) {
  std::stop_source stop;
  const std::stop_callback also(stop_, [&] { stop.request_stop(); });
  cell.curves.clear();
  cell.run.listeners.tensorBoard.clear();
  trainCell(
      cell, [&](std::int64_t) { stop.request_stop(); }, stop.get_token());
}

}  // namespace comparing
