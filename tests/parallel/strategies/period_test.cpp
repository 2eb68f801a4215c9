#include "muster/parallel/strategies/period.h"

#include "muster/parallel/strategies/overlapped_averaging.h"
#include "tests/parallel/builder_of.h"
#include "tests/parallel/no_exchange.h"
#include "tests/support/on_merge.h"
#include "tests/support/thrown.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr std::int64_t kWidth = 5;

using Iterations = std::vector<std::int64_t>;

std::shared_ptr<Listener> record(Iterations& merges) {
  return onMerge([&](const MergeEvent& event) { merges.push_back(event.iteration); });
}

/// The score by iteration, counted over the life of the model.
using Scores = std::function<double(std::int64_t)>;

ToyModel toy(Schedule rate = 0.5, const Scores& scores = {}) {
  auto control = std::make_shared<ToyControl>();
  if (scores) control->reportedScore = [=](const Batch& b, double) { return scores(b.stamp.iteration); };
  return ToyModel({.size = kWidth, .training = {.updater = Nesterovs{.learningRate = rate}}}, control);
}

template <typename Rule>
void train(Model& model, Rule rule, int epochs, int workers = 3, Listeners listeners = {}) {
  ToyIterator data(randomBatches(5, 8 * workers - 1, 4, kWidth, /*ragged=*/true), kWidth);
  auto builder = ParallelWrapper::Builder(model);
  builder.workers(workers).pinThreads(false).listeners(std::move(listeners));
  builder.strategy(rule).build().fit(data, epochs);
}

/// Every bit of a model after three epochs of 8 iterations.
template <typename Rule = Averaging>
std::vector<std::byte> bitsOf(Period period, Schedule rate = 0.5, const Scores& scores = {}) {
  auto model = toy(rate, scores);
  train(model, Rule{.frequency = period}, 3);
  return stateBits(model);
}

/// The iterations after which two workers were merged, in epochs of 24 iterations.
Iterations mergesOf(Period period, Schedule rate = 0.5, const Scores& scores = {}, int epochs = 1) {
  auto model = toy(rate, scores);
  Iterations merges;
  ToyIterator data(randomBatches(5, 48, 2, kWidth), kWidth);
  builderOf(model, 2, Averaging{.frequency = period}).listeners({record(merges)}).build().fit(data, epochs);
  return merges;
}

std::int64_t iterationsAt(Period period, const TrainingProgress& progress) {
  NoExchange exchange(/*participants=*/1);
  PeriodState state(period);
  state.begin(exchange);
  return state.iterations(progress);
}

std::string refusal(const Period& period) {
  return thrown<InvalidArgument>([&] { period.validate("gossip"); });
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

TEST_CASE("QSR at a constant learning rate is a fixed period, with the same bits of a training") {
  CHECK(bitsOf(Period::qsr(2, {.alpha = 0.9})) == bitsOf(3));  // floor(1.8^2)
  CHECK(bitsOf(Period::qsr(4, {.alpha = 0.9})) == bitsOf(4));
  CHECK(bitsOf(Period::qsr(4, {.alpha = 0})) == bitsOf(4));
  CHECK(bitsOf<OuterAveraging>(Period::qsr(2, {.alpha = 0.9})) == bitsOf<OuterAveraging>(3));
  CHECK(bitsOf(Period::qsr(2, {.alpha = 0.9})) != bitsOf(2));
}

TEST_CASE("QSR computes the period from the learning rate after each merge") {
  const auto at = [](QuadraticSynchronisation rule, double rate) {
    return iterationsAt(Period::qsr(2, rule), {.learningRate = rate});
  };
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

TEST_CASE("AdaComm at a constant score that never shrinks is a fixed period") {
  const Scores constant = [](std::int64_t) { return 0.7; };
  const auto period = Period::adaComm(3, {.interval = 2, .shrink = 1});
  CHECK(bitsOf(period, 0.5, constant) == bitsOf(3, 0.5, constant));
  CHECK(bitsOf<OuterAveraging>(period, 0.5, constant) == bitsOf<OuterAveraging>(3, 0.5, constant));
  CHECK(bitsOf(period, 0.5) != bitsOf(3, 0.5));
  CHECK(period.describe() == "every 3 iterations at first (AdaComm)");
}

TEST_CASE("AdaComm's rounds equal those worked out by hand") {
  // From iteration 8 on, a quarter of the score: sqrt(1/4) * 4 = 2.
  const Scores quarter = [](std::int64_t iteration) { return iteration < 8 ? 16.0 : 4.0; };
  const auto merges = [&](double shrink) {
    return mergesOf(Period::adaComm(4, {.interval = 2, .shrink = shrink}), 0.5, quarter);
  };
  // After 8: 4 as before. After 16: sqrt(4/16) * 4 = 2.
  CHECK(merges(1) == Iterations{4, 8, 12, 16, 18, 20, 22, 24});
  // After 8 the formula gives no smaller period, so it is halved: 2. After 12 likewise: 1.
  CHECK(merges(0.5) == Iterations{4, 8, 10, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24});
  // The score rises fourfold after 8: the period doubles from the interval's end on.
  const Scores rising = [](std::int64_t iteration) { return iteration < 8 ? 1.0 : 4.0; };
  CHECK(mergesOf(Period::adaComm(2, {.interval = 2, .shrink = 1}), 0.5, rising) ==
        Iterations{2, 4, 6, 8, 10, 12, 16, 20, 24});
}

TEST_CASE("with a delay AdaComm uses the scores of both parts of a round") {
  // From iteration 8 on, steps before the launch score 4 and steps before the landing 16: mean 10, as before.
  const Scores apart = [](std::int64_t iteration) {
    return iteration < 8 ? 10.0 : iteration % 4 < 2 ? 4.0 : 16.0;
  };
  auto model = toy(0.5, apart);
  Iterations all;
  train(model, OverlappedAveraging{.frequency = Period::adaComm(4, {.interval = 2, .shrink = 1}), .delay = 2},
        3, 3, {record(all)});
  // The end of an epoch also merges the steps since the launch.
  all.erase(std::ranges::unique(all).begin(), all.end());
  CHECK(all == Iterations{2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24});
}

TEST_CASE("AdaComm's period grows as the learning rate decays, by the root of the rates' ratio") {
  const Scores constant = [](std::int64_t) { return 2.0; };
  const StepSchedule rate{.initial = 1, .decay = 0.25, .every = 8};
  CHECK(mergesOf(Period::adaComm(2, {.interval = 100}), rate, constant) ==
        Iterations{2, 4, 6, 8, 12, 16, 24});
}

TEST_CASE("AdaComm ignores scores that are not positive") {
  const auto period = Period::adaComm(6, {.interval = 1});
  for (const double score : {0.0, -1.0})
    CHECK(mergesOf(period, 0.5, [=](std::int64_t) { return score; }) == Iterations{6, 12, 18, 24});
  CHECK(mergesOf(period, 0.5, [](std::int64_t i) { return i < 6 ? 1.0 : -1.0; }) ==
        Iterations{6, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24});
}

TEST_CASE("AdaComm's state is saved and resumed with the model") {
  const Scores falling = [](std::int64_t iteration) {
    return std::exp(-0.05 * static_cast<double>(iteration));
  };
  const auto check = [&](auto rule) {
    rule.frequency = Period::adaComm(7, {.interval = 2, .shrink = 1});
    auto whole = toy(0.5, falling), first = toy(0.5, falling), second = toy(0.5, falling);
    Iterations merges, later;
    train(whole, rule, 6, 3, {record(merges)});
    train(first, rule, 3);
    second.copyStateFrom(first);
    train(second, rule, 3, 3, {record(later)});
    CHECK(stateBits(second) == stateBits(whole));
    REQUIRE(!later.empty());
    CHECK(later.front() - 24 < 7);  // a restarted period would end with the epoch, at 7
    CHECK(std::ranges::equal(later, std::span(merges).last(later.size())));
  };
  check(Averaging{});
  check(OuterAveraging{.momentum = 0.5});
}

TEST_CASE("options out of range are refused by name") {
  CHECK(refusal(0) == "gossip: every must be between 1 and 1099511627776, got 0");
  CHECK(refusal(Period::postLocal(-1, 3)) == "gossip: period.until cannot be negative, got -1");
  CHECK(refusal(Period::qsr(1, {.alpha = -1})) == "gossip: period.alpha must be at least 0, got -1");
  CHECK(refusal(Period::qsr(1, {.alpha = 1, .power = 0})) == "gossip: period.power must be above 0, got 0");
  CHECK(refusal(Period::adaComm(1, {.interval = 0})) ==
        "gossip: period.interval must be between 1 and 1099511627776, got 0");
  CHECK(refusal(Period::adaComm(1, {.shrink = 0})) == "gossip: period.shrink must be in (0, 1], got 0");
  CHECK(refusal(Period::adaComm(1, {.shrink = std::nan("")})) ==
        "gossip: period.shrink must be in (0, 1], got nan");
  Period period = 3;
  period.first = 0;
  CHECK(refusal(period) == "gossip: period.first must be between 1 and 1099511627776, got 0");
  period = 3;
  period.untilEpoch = -1;
  CHECK(refusal(period) == "gossip: period.untilEpoch cannot be negative, got -1");
}
