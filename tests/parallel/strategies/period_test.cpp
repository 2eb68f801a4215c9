#include "muster/parallel/strategies/period.h"

#include "muster/core/optim/schedule.h"
#include "muster/parallel/exchange/host_exchange.h"
#include "muster/parallel/strategies/any_strategy.h"
#include "muster/parallel/strategies/averaging.h"
#include "muster/parallel/strategies/overlapped_averaging.h"
#include "tests/parallel/no_exchange.h"
#include "tests/parallel/one_segment.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::test;

namespace {

using Iterations = std::vector<std::int64_t>;

/// The mean score of a step, by iteration.
using Scores = std::function<double(std::int64_t)>;

/// The iterations after which a rule merges an epoch of 24 iterations.
Iterations mergesOf(const AnyStrategy& rule, const Schedule& rate = 0.5, const Scores& scores = {}) {
  auto block = StateBlock::zeros("parameters", BlockKind::Parameters, MergeRule::Average, oneSegment(1));
  HostExchange exchange({{&block}}, UpdaterState::Average);
  const auto strategy = rule.make();
  exchange.makeStrategyBlocks(strategy->blocks(1));
  strategy->begin(exchange);
  Iterations merges;
  for (TrainingProgress now; now.iteration < 24; ++now.rounds) {
    now.learningRate = rate.at(now.iteration);
    const RoundPlan plan = strategy->plan(now);
    const auto begin =
        std::exchange(now.iteration, std::min<std::int64_t>(24, now.iteration + plan.iterations));
    double sum = 0;
    for (auto i = begin; i < now.iteration; ++i) sum += scores ? scores(i) : 0;
    now.score = sum / static_cast<double>(now.iteration - begin);
    now.inFlight = plan.land.empty() ? plan.launch : FragmentSet::none();
    if (now.inFlight.empty()) merges.push_back(now.iteration);
  }
  return merges;
}

Iterations mergesOf(const Period& period, const Schedule& rate = 0.5, const Scores& scores = {}) {
  return mergesOf(AnyStrategy(Averaging{.frequency = period}), rate, scores);
}

std::int64_t iterationsAt(Period period, const TrainingProgress& progress) {
  NoExchange exchange(/*participants=*/1);
  PeriodState state(period);
  state.begin(exchange);
  return state.iterations(progress);
}

}  // namespace

TEST_CASE("a number is a fixed period") {
  CHECK(iterationsAt(3, {}) == 3);
  CHECK(iterationsAt(Period::fixed(3), {.iteration = 17}) == 3);
  CHECK(Period(3) == Period::fixed(3));
  CHECK(Period(3).describe() == "every 3 iterations");
  CHECK(Period().describe() == "every iteration");
}

TEST_CASE("post-local: every iteration up to one, then another period") {
  const auto period = Period::postLocal(100, 8);
  CHECK(iterationsAt(period, {.iteration = 0}) == 1);
  CHECK(iterationsAt(period, {.iteration = 99}) == 1);
  CHECK(iterationsAt(period, {.iteration = 100}) == 8);
  CHECK(period.describe() == "every iteration up to iteration 100, then every 8 iterations");
  CHECK(Period::postLocal(100, 1).describe() == "every iteration");
  CHECK(mergesOf(Period::postLocal(10, 7)) == Iterations{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 24});
}

TEST_CASE("post-local: the first part may have rounds of its own, and may end with an epoch") {
  Period period = 8;
  period.first = 4;
  period.until = 10;
  CHECK(mergesOf(period) == Iterations{4, 8, 10, 18, 24});
  period.until = 0;
  period.untilEpoch = 1;
  CHECK(iterationsAt(period, {.epoch = 0, .iteration = 99}) == 4);
  CHECK(iterationsAt(period, {.epoch = 1, .iteration = 100}) == 8);
  CHECK(period.describe() == "every 4 iterations up to epoch 1, then every 8 iterations");
}

TEST_CASE("QSR computes the period from the learning rate after each merge") {
  const auto at = [](QuadraticSynchronisation rule, double rate) {
    return iterationsAt(Period::qsr(2, rule), {.learningRate = rate});
  };
  CHECK(at({.alpha = 0.9}, 0.5) == 3);  // floor(1.8^2)
  CHECK(at({.alpha = 0.3}, 0.1) == 9);  // although 0.3 / 0.1 is below 3 in float64
  CHECK(at({.alpha = 0.3}, 0.11) == 7);
  CHECK(at({.alpha = 0.3, .power = 3}, 0.1) == 27);
  CHECK(at({.alpha = 0.3}, 10) == 2);
  CHECK(at({.alpha = 0.3}, 0) == std::int64_t{1} << 40);  // the epoch's end comes earlier
  CHECK(at({.alpha = 0}, 0) == 2);
  // Rate 1 up to iteration 7, 0.5 up to 15, then 0.25. The round after the merge at 6 still has 2 iterations.
  const StepSchedule rate{.initial = 1, .decay = 0.5, .every = 8};
  CHECK(mergesOf(Period::qsr(2, {.alpha = 1}), rate) == Iterations{2, 4, 6, 8, 12, 16, 24});
  CHECK(Period::qsr(2, {.alpha = 0.5}).describe() == "every 2 iterations or more (QSR, alpha 0.5)");
}

TEST_CASE("AdaComm's rounds equal those worked out by hand") {
  const auto merges = [](std::int64_t first, double shrink, const Scores& scores) {
    return mergesOf(Period::adaComm(first, {.interval = 2, .shrink = shrink}), 0.5, scores);
  };
  CHECK(merges(3, 1, [](std::int64_t) { return 0.7; }) == mergesOf(3));  // a constant score
  CHECK(Period::adaComm(3).describe() == "every 3 iterations at first (AdaComm)");
  // From iteration 8 on, a quarter of the score: sqrt(1/4) * 4 = 2.
  const Scores quarter = [](std::int64_t iteration) { return iteration < 8 ? 16.0 : 4.0; };
  // After 8: 4 as before. After 16: sqrt(4/16) * 4 = 2.
  CHECK(merges(4, 1, quarter) == Iterations{4, 8, 12, 16, 18, 20, 22, 24});
  // After 8 the formula gives no smaller period, so it is halved: 2. After 12 likewise: 1.
  CHECK(merges(4, 0.5, quarter) == Iterations{4, 8, 10, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24});
  // The score rises fourfold after 8: the period doubles from the interval's end on.
  const Scores rising = [](std::int64_t iteration) { return iteration < 8 ? 1.0 : 4.0; };
  CHECK(merges(2, 1, rising) == Iterations{2, 4, 6, 8, 10, 12, 16, 20, 24});
}

TEST_CASE("with a delay AdaComm uses the scores of both parts of a round") {
  // From iteration 8 on, steps before the launch score 4 and steps before the landing 16: mean 10, as before.
  const Scores apart = [](std::int64_t iteration) {
    return iteration < 8 ? 10.0 : iteration % 4 < 2 ? 4.0 : 16.0;
  };
  const auto period = Period::adaComm(4, {.interval = 2, .shrink = 1});
  CHECK(mergesOf(AnyStrategy(OverlappedAveraging{.frequency = period, .delay = 2}), 0.5, apart) ==
        Iterations{4, 8, 12, 16, 20, 24});
}

TEST_CASE("AdaComm's period grows as the learning rate decays, by the root of the rates' ratio") {
  const StepSchedule rate{.initial = 1, .decay = 0.25, .every = 8};
  CHECK(mergesOf(Period::adaComm(2, {.interval = 100}), rate, [](std::int64_t) { return 2.0; }) ==
        Iterations{2, 4, 6, 8, 12, 16, 24});
}

TEST_CASE("AdaComm ignores scores that are not positive") {
  const auto period = Period::adaComm(6, {.interval = 1});
  for (const double score : {0.0, -1.0})
    CHECK(mergesOf(period, 0.5, [=](std::int64_t) { return score; }) == Iterations{6, 12, 18, 24});
  CHECK(mergesOf(period, 0.5, [](std::int64_t i) { return i < 6 ? 1.0 : -1.0; }) ==
        Iterations{6, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24});
}
