#include "muster/parallel/strategies/streaming_outer.h"

#include <cmath>

#include "muster/parallel/training/internals.h"
#include "tests/parallel/strategies/reference.h"
#include "tests/parallel/rule_wrapper.h"
#include "tests/support/recording_listener.h"
#include "tests/support/reference_model.h"
#include "tests/support/small_examples.h"
#include "tests/support/state_bits.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

ReferenceModel network() {
  return ReferenceModel({.training = {.updater = Sgd{.learningRate = 0.25}}});
}

/// Records the user's parameters after each merge.
struct Merges final : Listener {
  void onMerge(const MergeEvent& event) override {
    const Tensor& values = event.trainer.model().block(BlockKind::Parameters).values;
    parameters.emplace_back(values.data<double>(), values.data<double>() + values.elements());
    fragments.push_back(static_cast<int>(event.values.front().value));
  }
  std::vector<std::vector<double>> parameters;
  std::vector<int> fragments;
};

std::string refusal(const StreamingOuter& options) {
  return thrown<InvalidArgument>([&] { options.validate(); });
}

}  // namespace

TEST_CASE("with one fragment, no delay and no mixing streaming has the bits of outer averaging") {
  for (const int workers : {1, 2, 3})
    for (const int devices : {0, workers}) {
      CAPTURE(workers);
      CAPTURE(devices);
      StreamingOuter one{.frequency = 3, .fragments = 1, .delay = 0, .mixing = 0};
      CHECK(trainRule(one, workers, devices) == trainRule(Averaging{.frequency = 3}, workers, devices));
      for (const bool nesterov : {false, true}) {
        one.rate = 0.7;
        one.momentum = 0.8;
        one.nesterov = nesterov;
        CHECK(trainRule(one, workers, devices) ==
              trainRule(OuterAveraging{.frequency = 3, .rate = 0.7, .momentum = 0.8, .nesterov = nesterov},
                        workers, devices));
      }
    }
}

TEST_CASE("with mixing 1 the workers train by themselves, and the outer parameters still move") {
  const int workers = 3;
  auto model = ruleToy();
  const auto before = model.parameters();
  ToyIterator data(ruleBatches(workers), kRuleWidth);
  wrapperOf(model, workers,
            StreamingOuter{.frequency = 3, .fragments = 1, .mixing = 1, .updaterState = UpdaterState::Keep})
      .fit(data, 2);
  CHECK(model.parameters() != before);
  checkTrainedAlone(model, workers, 2);
}

TEST_CASE("each parameter is merged once in a period, one fragment after the other") {
  for (const int fragments : {1, 2, 4})
    for (const std::int64_t delay : {0, 2}) {
      CAPTURE(fragments);
      CAPTURE(delay);
      auto model = network();
      const SegmentTable table = *model.block(BlockKind::Parameters).segments;
      const std::int64_t period = 3 * fragments, batches = 2 * (2 * period + 1);  // two periods and a step
      SmallExamples data(static_cast<int>(batches));
      const auto merges = std::make_shared<Merges>();
      wrapperOf(model, 2, StreamingOuter{.frequency = period, .fragments = fragments, .delay = delay}, 0,
                {merges})
          .fit(data);
      const auto parts = fragmentsOf(table, fragments);
      std::vector<int> landings(static_cast<std::size_t>(table.elements));
      int next = 0;
      for (std::size_t m = 1; m < merges->parameters.size(); ++m) {
        const int landed = merges->fragments[m];
        const auto &now = merges->parameters[m], &before = merges->parameters[m - 1];
        if (next == 2 * fragments) break;  // the next merges end the epoch
        if (landed < 0) {
          CHECK(now == before);
          continue;
        }
        if (m == 1 && delay == 0) next = 1;  // the first landing was merge 0
        CHECK(landed == next % fragments);
        ++next;
        for (int f = 0; f < fragments; ++f)
          for (const Slice slice : parts[static_cast<std::size_t>(f)].slices)
            for (std::int64_t i = slice.begin; i < slice.end; ++i) {
              const auto at = static_cast<std::size_t>(i);
              if (f != landed) CHECK(now[at] == before[at]);
              if (now[at] != before[at]) ++landings[at];
            }
      }
      CHECK(next == 2 * fragments);
      int moved = 0;
      for (const int count : landings) {
        CHECK(count <= 2);
        moved += count > 0 ? 1 : 0;
      }
      CHECK(moved >= 50);  // of 59 parameters; padding never moves
    }
}

TEST_CASE("streaming has the same bits on one or several devices, with listeners and random delays") {
  const StreamingOuter options{.frequency = 8,
                               .fragments = 4,
                               .delay = 1,
                               .mixing = 0.25,
                               .rate = 0.8,
                               .momentum = 0.5,
                               .nesterov = true};
  const auto trained = [&](int devices, bool listen, std::int64_t prefetch) {
    auto model = network();
    SmallExamples data(37);
    auto builder = ParallelWrapper::Builder(model);
    builder.workers(3).pinThreads(false).prefetchBuffer(prefetch).internals({.pretendedDevices = devices});
    if (listen) builder.listeners({std::make_shared<Merges>()});
    builder.strategy(options).build().fit(data, 3);
    return stateBits(model);
  };
  const auto expected = trained(0, false, 4);
  CHECK(trained(1, false, 4) == expected);
  CHECK(trained(0, true, 0) == expected);
  // Over several devices sums have another order; in float64 they differ in the last bits.
  CHECK(trained(3, true, 4) == trained(3, false, 1));
}

TEST_CASE("a training without mixing is resumed after an epoch from the model's state") {
  const StreamingOuter options{.frequency = 6, .fragments = 2, .mixing = 0, .rate = 0.7, .momentum = 0.8};
  SmallExamples data(31);
  auto whole = network(), first = network(), second = network();
  wrapperOf(whole, 2, options).fit(data, 4);
  wrapperOf(first, 2, options).fit(data, 2);
  second.copyStateFrom(first);
  wrapperOf(second, 2, options).fit(data, 2);
  CHECK(stateBits(second) == stateBits(whole));
}

TEST_CASE("against NumPy: fragments, delay and mixing") {
  if (!numpyFound()) return;
  checkAgainstNumpy("streaming_outer", "frequency=4 fragments=2",
                    StreamingOuter{.frequency = 4, .fragments = 2});
  checkAgainstNumpy(
      "streaming_outer", "frequency=4 fragments=2 delay=0 mixing=0 rate=0.7 momentum=0.5",
      StreamingOuter{.frequency = 4, .fragments = 2, .delay = 0, .mixing = 0, .rate = 0.7, .momentum = 0.5});
  checkAgainstNumpy("streaming_outer",
                    "frequency=6 fragments=2 delay=2 mixing=0.25 rate=0.7 momentum=0.5 nesterov=1 state=keep",
                    StreamingOuter{.frequency = 6,
                                   .fragments = 2,
                                   .delay = 2,
                                   .mixing = 0.25,
                                   .rate = 0.7,
                                   .momentum = 0.5,
                                   .nesterov = true,
                                   .updaterState = UpdaterState::Keep});
}

TEST_CASE("options out of range are refused by name") {
  CHECK(refusal({.fragments = 0}) == "streaming outer averaging: fragments must be between 1 and 64, got 0");
  CHECK(refusal({.frequency = 5}) ==
        "streaming outer averaging: every must be a multiple of the 2 fragments, got 5");
  CHECK(refusal({.frequency = 6, .delay = 3}) ==
        "streaming outer averaging: delay must be shorter than a fragment's turn of 3 iterations, got 3");
  CHECK(refusal({.mixing = -0.5}) == "streaming outer averaging: mixing must be in [0, 1], got -0.5");
  CHECK(refusal({.rate = std::nan("")}) == "streaming outer averaging: rate must be above 0, got nan");
  auto model = ruleToy();
  ToyIterator data(ruleBatches(2), kRuleWidth);
  CHECK(thrown<InvalidArgument>([&] { wrapperOf(model, 2, StreamingOuter{}).fit(data); }) ==
        "streaming outer averaging: the model has 1 tensor, which 2 fragments cannot be made of");
  CHECK(StreamingOuter{}.make()->describe() ==
        "streaming outer averaging, each of 2 fragments every 10 iterations, delay 1 (rate 1, momentum 0, "
        "mixing 0.5)");
  StreamingOuter::diloco().validate();
}
