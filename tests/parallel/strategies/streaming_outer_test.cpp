#include "muster/parallel/strategies/streaming_outer.h"

#include "tests/parallel/rule_wrapper.h"
#include "tests/parallel/strategies/reference.h"
#include "tests/support/on_merge.h"
#include "tests/support/reference_model.h"
#include "tests/support/small_examples.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

ReferenceModel network() {
  return ReferenceModel({.training = {.updater = Sgd{.learningRate = 0.25}}});
}

std::string refusal(const StreamingOuter& options) {
  return thrown<InvalidArgument>([&] { options.validate(); });
}

}  // namespace

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
      std::vector<std::vector<double>> merges;  // the user's parameters
      std::vector<int> turns;                   // the fragment that landed
      const auto recorder = onMerge([&](const MergeEvent& event) {
        const auto values = event.trainer.model().block(BlockKind::Parameters).values.span<double>();
        merges.emplace_back(values.begin(), values.end());
        turns.push_back(static_cast<int>(event.values.front().value));
      });
      wrapperOf(model, 2, StreamingOuter{.frequency = period, .fragments = fragments, .delay = delay}, 0,
                {recorder})
          .fit(data);
      const auto parts = fragmentsOf(table, fragments);
      std::vector<int> landings(static_cast<std::size_t>(table.elements));
      int next = 0;
      for (std::size_t m = 1; m < merges.size(); ++m) {
        const int landed = turns[m];
        const auto &now = merges[m], &before = merges[m - 1];
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
  ToyModel model;
  auto data = ToyIterator::ofValues({1, 2});
  CHECK_REFUSED(wrapperOf(model, 2, StreamingOuter{}).fit(data),
                "streaming outer averaging: the model has 1 tensor, which 2 fragments cannot be made of");
  CHECK(StreamingOuter{}.make()->describe() ==
        "streaming outer averaging, each of 2 fragments every 10 iterations, delay 1 (rate 1, momentum 0, "
        "mixing 0.5)");
  StreamingOuter::diloco().validate();
}
