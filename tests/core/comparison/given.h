#pragma once

#include "muster/core/comparison/comparison.h"
#include "tests/support/standard.h"

namespace muster::test {

/// A comparison whose runs are given.
struct Given {
  explicit Given(std::vector<std::string> arms) {
    for (auto& arm : arms) c.grid.arms.push_back({std::move(arm), {"training.workers=2"}});
    c.grid.seeds = {1, 2, 3};
    c.runs.resize(c.grid.arms.size());
    c.title = "run.json";
  }

  /// A run with a point each `pace` seconds and 100 samples; the scores are given.
  RunRecord& run(std::size_t arm, std::int64_t seed, const std::vector<double>& scores, double pace = 1) {
    auto& one = c.runs[arm].emplace_back(RunRecord{.arm = c.grid.arms[arm].name,
                                                   .seed = seed,
                                                   .workers = 2,
                                                   .computeSeconds = 3 * pace,
                                                   .cores = 2,
                                                   .threads = 2});
    for (const double score : scores) {
      const auto n = static_cast<std::int64_t>(one.points.size()) + 1;
      one.points.push_back({.samples = 100 * n,
                            .iterations = n,
                            .rounds = n,
                            .seconds = pace * static_cast<double>(n),
                            .bytes = 50 * n,
                            .trainingLoss = 1,
                            .loss = 2,
                            .score = score,
                            .distance = 0.5 * static_cast<double>(n)});
    }
    return one;
  }

  ComparisonSummary summary() const { return c.summarise(); }
  ArmSummary arm(const std::string& name) const {
    const auto all = summary();
    return *std::ranges::find(all.arms, name, &ArmSummary::name);
  }

  Comparison c = {};
};

}  // namespace muster::test
