#include "muster/parallel/training/fragment_flights.h"

#include <fmt/ranges.h>

#include "muster/core/nn/training_state.h"
#include "tests/parallel/no_exchange.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

/// Writes down its calls: "launch 0 [1, 2] at 3".
class Recorder final : public Strategy {
 public:
  std::string describe() const override { return "recorder"; }
  RoundPlan plan(const TrainingProgress&) override { return {}; }
  void launch(int fragment, const Round& round, MergeOps&) override {
    note("launch", fragment, round);
    if (round.landsAtOnce) calls.back() += " to land at once";
  }
  void land(int fragment, const Round& round, MergeOps&) override { note("land", fragment, round); }

  std::vector<std::string> calls;

 private:
  void note(std::string_view what, int fragment, const Round& round) {
    calls.push_back(fmt::format("{} {} {} of {}", what, fragment, round.weights, round.launched));
  }
};

/// Two workers and two fragments.
struct Training {
  explicit Training(int fragments = 2) { flights.begin(fragments); }

  /// Ends a round. @return the strategy's calls.
  std::vector<std::string> end(const RoundPlan& plan, std::vector<double> weights, std::int64_t iteration,
                               bool last = false, bool pending = false) {
    const Round round{.weights = weights, .iteration = iteration, .last = last};
    flights.endRound(plan, round, pending);
    Recorder strategy;
    MergeOps ops(exchange, 0, context, MergeOps::Waiting::None);
    flights.call(strategy, round, ops);
    flights.commit();
    return strategy.calls;
  }

  FragmentFlights flights{2};
  NoExchange exchange{2};
  Context context;
};

using Calls = std::vector<std::string>;
const RoundPlan kNothing{.launch = FragmentSet::none(), .land = FragmentSet::none()};
const RoundPlan kBoth{};
const RoundPlan kLaunchFirst{.launch = FragmentSet::of(0), .land = FragmentSet::none()};
const RoundPlan kLandFirst{.launch = FragmentSet::none(), .land = FragmentSet::of(0)};

}  // namespace

TEST_CASE("what is launched and lands in one round lands at once, with the round's weights") {
  Training training;
  CHECK(training.end(kBoth, {1, 2}, 3) == Calls{"launch 0 [1, 2] of 3 to land at once", "land 0 [1, 2] of 3",
                                                "launch 1 [1, 2] of 3 to land at once",
                                                "land 1 [1, 2] of 3"});
  CHECK(training.flights.launched());
  CHECK(training.flights.landed());
  CHECK_FALSE(training.flights.outstanding());
}

TEST_CASE("a launch gets the weights of all rounds since the last one, its landing those of the launch") {
  Training training;
  CHECK(training.end(kNothing, {1, 0}, 1) == Calls{});
  CHECK(training.flights.outstanding());
  CHECK(training.end(kLaunchFirst, {2, 5}, 2) == Calls{"launch 0 [3, 5] of 2"});
  CHECK(training.flights.inFlight().bits == 1);
  CHECK_FALSE(training.flights.landed());
  CHECK(training.end(kLandFirst, {7, 7}, 3) == Calls{"land 0 [3, 5] of 2"});
  CHECK(training.flights.inFlight().empty());
  CHECK_FALSE(training.flights.launched());
  CHECK(training.end(kLaunchFirst, {1, 1}, 4) == Calls{"launch 0 [8, 8] of 4"});
}

TEST_CASE("a fragment that lands and is launched in one round lands first") {
  Training training(1);
  training.end(kLaunchFirst, {1, 1}, 1);
  CHECK(training.end(kBoth, {2, 3}, 2) == Calls{"land 0 [1, 1] of 1", "launch 0 [2, 3] of 2"});
  CHECK(training.flights.inFlight().bits == 1);
}

TEST_CASE("in the last round everything lands, whatever the plan") {
  Training training;
  training.end(kLaunchFirst, {1, 1}, 1);
  CHECK(training.end(kNothing, {0, 4}, 2, /*last=*/true) ==
        Calls{"land 0 [1, 1] of 1", "launch 0 [0, 4] of 2 to land at once", "land 0 [0, 4] of 2",
              "launch 1 [1, 5] of 2 to land at once", "land 1 [1, 5] of 2"});
  CHECK_FALSE(training.flights.outstanding());
}

TEST_CASE("an untrained round launches nothing, and lands what the strategy has pending") {
  Training training;
  CHECK(training.end(kBoth, {0, 0}, 1) == Calls{});
  CHECK(training.end(kBoth, {0, 0}, 1, /*last=*/true, /*pending=*/true) ==
        Calls{"land 0 [0, 0] of 1", "land 1 [0, 0] of 1"});
}

TEST_CASE("a fragment must not be launched again before it lands") {
  Training training;
  training.end(kLaunchFirst, {1, 1}, 1);
  CHECK_REFUSED(training.end(kLaunchFirst, {1, 1}, 2),
                "the strategy's plan: fragments 0x1 are launched again before they land");
}

TEST_CASE("a checkpoint holds what is in flight and what was trained since") {
  Training training;
  training.end(kLaunchFirst, {1, 2}, 1);
  training.end(kNothing, {3, 0}, 2);
  // For each fragment: since its launch, of its launch, the launch's iteration.
  const std::vector<double> saved{3, 0, 1, 2, 1, 4, 2, 0, 0, 0};
  CHECK(training.flights.weights() == saved);

  Training resumed;
  resumed.flights.resume(training.flights.inFlight(), saved);
  CHECK(resumed.flights.weights() == saved);
  CHECK(resumed.end(kNothing, {0, 1}, 3, /*last=*/true) == training.end(kNothing, {0, 1}, 3, /*last=*/true));
}

TEST_CASE("a checkpoint of other workers or fragments is refused") {
  FragmentFlights flights(2);
  CHECK(thrown<SavedStateError>([&] { flights.resume(FragmentSet::none(), std::vector<double>(9)); }) ==
        "training state: 9 weights of fragments and those in flight (0x0) cannot be of 2 workers");
  CHECK(thrown<SavedStateError>([&] { flights.resume(FragmentSet::of(1), std::vector<double>(5)); }) ==
        "training state: 5 weights of fragments and those in flight (0x2) cannot be of 2 workers");
  flights.resume(FragmentSet::none(), std::vector<double>(5));
  CHECK(thrown<SavedStateError>([&] { flights.begin(2); }) ==
        "training state: it is of 1 fragments, but the strategy has 2");
  for (const int count : {0, 65})
    CHECK_REFUSED(FragmentFlights(2).begin(count),
                  fmt::format("the strategy must have between 1 and 64 fragments, got {}", count));
}
