#include "muster/parallel/training/round_plans.h"

#include "muster/core/base/error.h"
#include "muster/parallel/strategies/option_fields.h"
#include "muster/parallel/training/named_call.h"

namespace muster {

void RoundPlans::requirePossible(const RoundPlan& plan) const {
  require(plan.iterations >= 1, "the strategy's plan: a round must have at least 1 iteration, got {}",
          plan.iterations);
  require(plan.iterations <= detail::kMostIterations,
          "the strategy's plan: a round has at most {} iterations, got {}", detail::kMostIterations,
          plan.iterations);
  require(plan.iterations == 1 || work_ == LocalWork::Step,
          "the strategy's plan: a round of gradients has 1 iteration, got {}", plan.iterations);
}

void RoundPlans::requireSaved(const RoundPlan& plan) const {
  try {
    requirePossible(plan);
  } catch (const InvalidArgument& error) {
    throw SavedStateError(fmt::format("training state: {}", error.what()));
  }
}

RoundPlan RoundPlans::next(const Ledger& ledger) {
  report_ = strategy_.report();
  values_.assign(report_.values.begin(), report_.values.end());  // as many every time: allocates once
  report_.values = values_;
  const auto progress = muster::progress(ledger, learningRate_);
  const RoundPlan plan = callStrategy("plan a round", [&] { return strategy_.plan(progress); });
  requirePossible(plan);
  return plan;
}

void RoundOrders::train(int worker, const Ledger& ledger) {
  const auto w = static_cast<std::size_t>(worker);
  orders_[w] = {.what = Order::Do::Train,
                .iterations = iterations(ledger, worker, alone_),
                .merged = ledger.workers[w].unmerged.batches == 0,
                .epochOver = ledger.verdict == Verdict::EpochOver};
}

void RoundOrders::giveNext(Order::Do what, const Ledger& ledger) {
  for (std::size_t w = 0; w < orders_.size(); ++w) {
    train(static_cast<int>(w), ledger);
    orders_[w].what = what;
    orders_[w].counters = {ledger.iteration, ledger.epoch};
  }
}

}  // namespace muster
