#include "muster/parallel/strategies/averaging.h"

#include "muster/parallel/strategies/period.h"
#include "tests/parallel/strategies/reference.h"
#include "tests/support/thrown.h"

using namespace muster;
using muster::test::checkAgainstNumpy;
using muster::test::numpyFound;
using muster::test::thrown;

namespace {

/// Records the merges requested from it.
class RecordingExchange final : public Exchange {
 public:
  RecordingExchange() : Exchange({.participants = 3}, std::vector<SharedBlock>(3)) {
    blocks_[0].name = "parameters";
    blocks_[1].name = "velocity";
    blocks_[1].kind = BlockKind::UpdaterState;
    blocks_[2].name = "gradients";
    blocks_[2].kind = BlockKind::Gradients;
    for (auto& block : blocks_) block.replicas.assign(3, Tensor::zeros({25}));
  }
  void merge(int participant, const SharedBlock& block, std::span<const double> weights, Context&,
             Spread* spread) override {
    if (spread) *spread = {.distance = 1.0 + participant, .norm = 8};
    merged += fmt::format("{} {} {};", participant, block.name, weights[2]);
  }
  void mean(int, const SliceMean&, Context&) override {}
  void moments(int, const SharedBlock&, std::span<const double>, double, Context&) override {}
  void mix(int, const SharedBlock&, const Mixing&, Context&) override {}
  void eachShare(int, std::int64_t, Slice, Context&, ShareUse) override {}
  std::string merged;
};

std::int64_t roundAt(const Averaging& options, std::int64_t iteration) {
  return options.make()->plan({.iteration = iteration}).iterations;
}

std::string refusal(const Averaging& options) {
  return thrown<InvalidArgument>([&] { options.validate(); });
}

}  // namespace

TEST_CASE("every round is as long as the frequency") {
  CHECK(roundAt({.frequency = 3}, 0) == 3);
  CHECK(roundAt({.frequency = 3}, 17) == 3);
  CHECK(Averaging{.frequency = 3}.make()->describe() == "averaging every 3 iterations");
  CHECK(Averaging{}.make()->describe() == "averaging every iteration");
}

TEST_CASE("each option out of range is refused by name, with its value") {
  CHECK(refusal({.frequency = 0}) == "averaging: every must be between 1 and 1099511627776, got 0");
  CHECK(refusal({.updaterState = static_cast<UpdaterState>(7)}) == "updaterState: there is no choice 7");
}

TEST_CASE("each block except the gradients is merged with the unchanged weights") {
  const auto strategy = Averaging{}.make();
  RecordingExchange exchange;
  strategy->begin(exchange);
  Context context;
  MergeOps ops(exchange, 2, context);
  const std::vector<double> weights = {1, 0, 2.5};
  strategy->land(0, {.weights = weights}, ops);
  CHECK(exchange.merged == "2 parameters 2.5;2 velocity 2.5;");
  CHECK(ops.bytes() == 200);
}

TEST_CASE("the divergence is measured on request, over all slices of the parameters") {
  RecordingExchange exchange;
  Context context;
  const std::vector<double> weights = {1, 0, 2.5};
  const auto measured = [&](bool measure) {
    const auto strategy = Averaging{.measureDivergence = measure}.make();
    strategy->begin(exchange);
    for (int participant = 0; participant < 3; ++participant) {
      MergeOps ops(exchange, participant, context);
      strategy->land(0, {.weights = weights}, ops);
    }
    return strategy->report().divergence;
  };
  CHECK(measured(true) == 0.5);  // sqrt((1 + 2 + 3) / (3 * 8))
  CHECK(measured(false) == 0);
}

TEST_CASE("against NumPy: every frequency, and the updater's state after a merge") {
  if (!numpyFound()) return;
  checkAgainstNumpy("averaging", "frequency=1", Averaging{});
  checkAgainstNumpy("averaging", "frequency=3 state=keep",
                    Averaging{.frequency = 3, .updaterState = UpdaterState::Keep});
  checkAgainstNumpy("averaging", "frequency=5 state=reset",
                    Averaging{.frequency = 5, .updaterState = UpdaterState::Reset});
}

TEST_CASE("against NumPy: averaging with each kind of period") {
  if (!numpyFound()) return;
  checkAgainstNumpy("averaging", "frequency=4 post_local=3", Averaging{.frequency = Period::postLocal(3, 4)});
  // At 0.25, 0.125, 0.0625: 2, 5 and 23 iterations.
  checkAgainstNumpy("averaging", "frequency=2 qsr=0.3",
                    Averaging{.frequency = Period::qsr(2, {.alpha = 0.3})});
  checkAgainstNumpy("averaging", "frequency=3 adacomm=1 shrink=1",
                    Averaging{.frequency = Period::adaComm(3, {.interval = 1, .shrink = 1})});
  checkAgainstNumpy("averaging", "frequency=2 adacomm=2 shrink=0.5",
                    Averaging{.frequency = Period::adaComm(2, {.interval = 2, .shrink = 0.5})});
}

TEST_CASE("against NumPy: running averages of the merged models") {
  if (!numpyFound()) return;
  for (const auto& [options, average] :
       {std::pair{"frequency=2 ema=0.4", MergedModelAverageOptions{.decay = 0.4}},
        std::pair{"frequency=3 swa=1", MergedModelAverageOptions{.decay = {}}}})
    checkAgainstNumpy(
        "averaging", options,
        [&](ParallelWrapper::Builder& builder, int) {
          builder.strategy(Averaging{.frequency = average.decay ? 2 : 3});
        },
        average);
}
