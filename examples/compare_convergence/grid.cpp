#include "examples/compare_convergence/grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "examples/compare_convergence/lists.h"
#include "examples/compare_convergence/names.h"
#include "muster/core/base/error.h"
#include "muster/parallel/strategies/named_strategy.h"

namespace convergence {
namespace {

using muster::require;

constexpr std::string_view kHalf = "speeds=half";

template <typename T>
void requireSome(const std::vector<T>& list, std::string_view option) {
  require(!list.empty(), "the grid is empty, there is nothing to train: --{} names nothing", option);
}

std::string_view nameIn(std::string_view strategy) {
  return strategy.substr(0, strategy.find(':'));
}

/// Whether the iterations between the merges of a strategy, which may have options, are its option `every`.
bool hasEvery(std::string_view strategy) {
  const auto options = muster::optionsOf(muster::strategyNamed(nameIn(strategy), "", /*workers=*/2));
  return std::ranges::find(options, "every", &muster::StrategyOption::name) != options.end();
}

bool averages(const GridLists& lists) {
  return std::ranges::find(lists.modes, Mode::Averaging) != lists.modes.end();
}

void requireArms(const GridLists& lists) {
  if (lists.strategies.empty()) requireSome(lists.modes, "mode");
  requireSome(lists.workers, "workers");
  requireSome(lists.batches, "batch");
  requireSome(lists.updaters, "updater");
  requireSome(lists.scalings, "lr-scaling");
  requireSome(lists.seeds, "seeds");
  if (usesFrequency(lists)) requireSome(lists.frequencies, "frequency");
  if (averages(lists)) requireSome(lists.synchronousUntil, "post-local");
}

/// The index of `arm` in `arms`; appends it if missing.
std::size_t indexOf(std::vector<Arm>& arms, const Arm& arm) {
  const auto found = std::ranges::find(arms, arm);
  const auto index = static_cast<std::size_t>(found - arms.begin());
  if (found == arms.end()) arms.push_back(arm);
  return index;
}

/// Options after colons, as strategyNamed reads them: a colon becomes a comma if an option or a number comes
/// after it. Others belong to a value.
std::string withCommas(std::string_view options) {
  std::string text(options);
  for (std::size_t at = text.find(':'); at != text.npos; at = text.find(':', at + 1)) {
    const auto next = std::string_view(text).substr(at + 1);
    if (beginsNumber(next) || next.find('=') < next.find_first_of(":,")) text[at] = ',';
  }
  return text;
}

std::vector<Arm> armsOf(const Panel& panel, const GridLists& lists) {
  Arm one{.batch = panel.batch, .updater = panel.updater.name, .learningRate = panel.updater.learningRate};
  Arm whole = one;
  whole.batch *= panel.workers;
  whole.learningRate *= scalingFactor(panel.scaling, panel.workers);
  std::vector<Arm> arms{one, whole};
  for (const Mode mode : lists.modes) {
    Arm arm = whole;
    arm.mode = mode;
    arm.workers = panel.workers;
    arm.batch = panel.batch;
    if (mode != Mode::Averaging) {
      arms.push_back(arm);
      continue;
    }
    for (const auto until : lists.synchronousUntil)
      for (const auto frequency : lists.frequencies) {
        arm.frequency = frequency;
        arm.synchronousUntil = frequency == 1 ? 0 : until;
        arms.push_back(arm);
      }
  }
  for (const auto& strategy : lists.strategies) {
    const bool every = hasEvery(strategy);
    for (const auto frequency : every ? lists.frequencies : std::vector<std::int64_t>{0}) {
      Arm arm = whole;
      arm.mode = Mode::Strategy;
      arm.workers = panel.workers;
      arm.batch = panel.batch;
      arm.strategy = strategy;
      arm.frequency = frequency;
      strategyOf(arm);
      arms.push_back(arm);
    }
  }
  return arms;
}

}  // namespace

bool usesFrequency(const GridLists& lists) {
  return averages(lists) || std::ranges::any_of(lists.strategies, &hasEvery);
}

double scalingFactor(Scaling scaling, std::int64_t workers) {
  if (scaling == Scaling::Linear) return static_cast<double>(workers);
  if (scaling == Scaling::SquareRoot) return std::sqrt(static_cast<double>(workers));
  return 1;
}

void Arm::fields(muster::Fields& f) {
  f.field("mode", mode);
  f.field("workers", workers);
  f.field("frequency", frequency);
  f.field("batch", batch);
  f.field("updater", updater);
  f.field("learningRate", learningRate);
  f.field("synchronousUntil", synchronousUntil);
  f.field("strategy", strategy);
}

muster::AnyStrategy strategyOf(const Arm& arm) {
  const auto name = nameIn(arm.strategy);
  std::string options =
      withCommas(std::string_view(arm.strategy).substr(std::min(name.size() + 1, arm.strategy.size())));
  require(arm.frequency == 0 || ("," + options).find(",every=") == options.npos,
          "--strategy {}: leave out every=, because --frequency gives it", arm.strategy);
  if (const auto half = options.find(kHalf); half != std::string::npos) {
    std::string speeds = "speeds=0.5";
    for (std::int64_t w = 1; w < arm.workers; ++w) speeds += ",1";
    options.replace(half, kHalf.size(), speeds);
  }
  if (arm.frequency > 0) options += fmt::format("{}every={}", options.empty() ? "" : ",", arm.frequency);
  const auto strategy = muster::strategyNamed(name, options, static_cast<int>(arm.workers));
  strategy.make()->blocks(static_cast<int>(arm.workers));  // throws if it cannot merge so many workers
  return strategy;
}

Grid expandGrid(const GridLists& lists) {
  requireArms(lists);
  Grid grid{.arms = {}, .panels = {}, .seeds = lists.seeds};
  for (const auto& updater : lists.updaters)
    for (const auto scaling : lists.scalings)
      for (const auto batch : lists.batches)
        for (const auto workers : lists.workers) {
          Panel panel{.workers = workers, .batch = batch, .updater = updater, .scaling = scaling, .arms = {}};
          for (const Arm& arm : armsOf(panel, lists)) {
            const auto index = indexOf(grid.arms, arm);
            if (std::ranges::find(panel.arms, index) == panel.arms.end()) panel.arms.push_back(index);
          }
          grid.panels.push_back(std::move(panel));
        }
  return grid;
}

std::string degenerateArms(const Grid& grid, std::int64_t examples) {
  std::vector<std::string> seldom, idle;
  for (const auto& arm : grid.arms) {
    if (arm.mode == Mode::Single) continue;
    const auto batches = (examples + arm.batch - 1) / arm.batch;
    const auto iterations = (batches + arm.workers - 1) / arm.workers;
    if (batches < arm.workers)
      idle.push_back(armName(arm, grid));
    else if (arm.frequency > iterations)
      seldom.push_back(armName(arm, grid));
  }
  std::vector<std::string> parts;
  if (!seldom.empty())
    parts.push_back(fmt::format("averaged at the end of an epoch only, whatever the frequency: {}",
                                fmt::join(seldom, "; ")));
  if (!idle.empty())
    parts.push_back(fmt::format("fewer batches than workers, some train nothing: {}", fmt::join(idle, "; ")));
  return parts.empty() ? "" : fmt::format("Warning: {}", fmt::join(parts, ". Also "));
}

}  // namespace convergence
