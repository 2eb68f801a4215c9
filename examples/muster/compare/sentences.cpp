#include "examples/muster/compare/sentences.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "examples/muster/compare/base_data.h"
#include "muster/core/base/number_text.h"
#include "muster/core/base/plural.h"
#include "muster/datasets/source/detail/example_hashes.h"
#include "muster/parallel/run/detail/preparation.h"
#include "muster/parallel/run/prepared_run.h"

namespace comparing {

std::vector<std::string> paragraphsOf(const BaseRun& base, const muster::LoadedData& data,
                                      const muster::ComparisonGrid& grid, muster::Network& network,
                                      const std::string& heldOut) {
  const auto run = base.run();
  const auto noun = muster::detail::nounOf(run.data);
  std::vector<std::string> all{fmt::format("Data: {}, {} to train with and {} to test with, from {}.",
                                           data.title, counted(grid.trainExamples, noun),
                                           muster::groupedNumber(static_cast<double>(grid.testExamples)),
                                           data.origin)};
  if (!heldOut.empty()) all.push_back(heldOut);
  all.push_back(
      fmt::format("Every arm begins with the same weights for a seed, and sees the {}s in the same order; "
                  "the network of the run "
                  "file has {} parameters, and trains {}{}.",
                  noun, muster::groupedNumber(static_cast<double>(network.parameterCount())),
                  muster::plural(run.training.epochs, "epoch"),
                  run.listeners.earlyStopping ? ", or until it no longer improves (earlyStopping)" : ""));
  all.push_back(
      fmt::format("The merged model is tested at the first merge at or after each multiple of {}, and at "
                  "the end.",
                  counted(grid.testEvery, "sample")));
  return all;
}

std::vector<std::string> warningsOf(const BaseRun& base, const muster::ComparisonGrid& grid) {
  std::vector<std::string> seldom, idle, all;
  for (const auto& arm : grid.arms) {
    const auto run = base.run(arm.settings);
    const auto more = run.data.dropLast ? 0 : run.data.batch - 1;
    const auto batches = (grid.trainExamples + more) / run.data.batch;
    if (batches < run.training.workers)
      idle.push_back(arm.name);
    else if (!muster::detail::periodRemark(run, batches).empty())
      seldom.push_back(arm.name);
  }
  const auto say = [&](std::string_view what, const std::vector<std::string>& arms) {
    if (!arms.empty()) all.push_back(fmt::format("Warning: {}: {}.", what, fmt::join(arms, "; ")));
  };
  say("merged at the end of each epoch only, because an epoch has fewer iterations than the period", seldom);
  say("an epoch has fewer batches than workers, so some train nothing", idle);
  return all;
}

}  // namespace comparing
