// User-defined strategies, with models whose numbers can be computed by hand.
#include <algorithm>
#include <array>
#include <mutex>

#include "muster/parallel/training/internals.h"
#include "tests/support/failure.h"
#include "tests/support/on_merge.h"
#include "tests/support/recording_listener.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

using Place = StrategyBlock::Place;

/// Momentum between merges: D = momentum D + (mean - w), w = w + D.
struct BlockMomentum {
  double momentum = 0.5;
  std::int64_t frequency = 1;

  void validate() const {
    require(momentum >= 0 && momentum < 1, "blockMomentum: momentum must be in [0, 1), got {}", momentum);
  }
  std::unique_ptr<Strategy> make() const;
};

class BlockMomentumStrategy final : public Strategy {
 public:
  explicit BlockMomentumStrategy(const BlockMomentum& options) : options_(options) {}
  std::string describe() const override { return fmt::format("block momentum {}", options_.momentum); }
  std::vector<StrategyBlock> blocks(int) const override {
    return {{.name = "momentum"}, {.name = "mean", .dtype = DType::Float64, .saved = false}};
  }
  RoundPlan plan(const TrainingProgress&) override { return {.iterations = options_.frequency}; }
  void land(int, const Round& round, MergeOps& ops) override {
    const SharedBlock& parameters = ops.block(BlockKind::Parameters);
    const auto merged = std::span<const Tensor>(parameters.mergedCopies);
    const auto all = Fragment::whole(parameters.mergedCopy().elements());
    const auto mean = ops.own("mean"), momentum = ops.own("momentum");
    ops.mean(parameters.replicas, round.weights, mean, all);
    ops.combine(momentum, {{options_.momentum, momentum}, {1, mean}, {-1, merged}}, all);
    ops.combine(merged, {{1, merged}, {1, momentum}}, all);
    ops.writeBack(merged, parameters.replicas, 0, all);
  }

 private:
  const BlockMomentum options_;
};

std::unique_ptr<Strategy> BlockMomentum::make() const {
  return std::make_unique<BlockMomentumStrategy>(*this);
}

ParallelWrapper::Builder wrapperOf(Model& model, int workers) {
  auto builder = ParallelWrapper::Builder(model);
  builder.workers(workers).pinThreads(false);
  return builder;
}

ToyModel halving() {
  return ToyModel({.training = {.updater = Sgd{.learningRate = 0.5}}});
}

// From p = 0, worker 0 on {2}, worker 1 on {6}, learning rate 0.5, momentum 0.5:
//   replicas 1 and 3, mean 2: D = 2, p = 2;
//   replicas 2 and 4, mean 3: D = 1 + 1 = 2, p = 4;
//   replicas 3 and 5, mean 4: D = 1 + 0 = 1, p = 5;
//   replicas 3.5 and 5.5, mean 4.5: D = 0.5 - 0.5 = 0, p = 5.
const std::vector<float> kRounds = {2, 6, 2, 6};

}  // namespace

TEST_CASE(
    "a user-defined strategy with momentum equals values worked out by hand, on one or several devices") {
  for (const int devices : {0, 1, 2}) {
    CAPTURE(devices);
    auto model = halving();
    auto data = ToyIterator::ofValues(kRounds);
    auto wrapper =
        wrapperOf(model, 2).strategy(BlockMomentum{}).internals({.pretendedDevices = devices}).build();
    CHECK(wrapper.plan() ==
          fmt::format("2 workers on cpu (1 thread each, not pinned), block momentum 0.5{}: 2 batches a round",
                      devices == 0   ? ""
                      : devices == 1 ? ", merged on cpu"
                                     : ", merged over 2 devices by peer copies"));
    wrapper.fit(data);
    CHECK(model.parameters()[0] == 4);
    wrapper.fit(data);  // continues with its momentum
    CHECK(model.parameters()[0] == 5);
    REQUIRE(model.strategyState().size() == 1);
    CHECK(model.strategyState()[0].name == "momentum");
    CHECK(model.strategyState()[0].values.data<float>()[0] == 0);
  }
}

TEST_CASE("numbers that a strategy reports of a round reach the listeners of the merge") {
  struct Reporting {
    struct Rule final : Strategy {
      std::string describe() const override { return "reporting"; }
      RoundPlan plan(const TrainingProgress& progress) override {
        reported_ = {{{"period", 2}, {"rounds", static_cast<double>(progress.rounds)}}};
        return {.iterations = 2};
      }
      void land(int, const Round& round, MergeOps& ops) override { ops.mergeState(round.weights); }
      MergeReport report() const override { return {.values = reported_}; }
      std::array<MergeValue, 2> reported_;
    };
    void validate() const {}
    std::unique_ptr<Strategy> make() const { return std::make_unique<Rule>(); }
  };
  auto model = halving();
  auto data = ToyIterator::ofValues({1, 2, 3, 4, 5, 6});
  std::string values;
  const auto listener = onMerge([&](const MergeEvent& event) {
    for (const auto& [name, value] : event.values) values += fmt::format("{} {}, ", name, value);
  });
  wrapperOf(model, 2).strategy(Reporting{}).listeners({listener}).build().fit(data);
  CHECK(values == "period 2, rounds 0, period 2, rounds 1, ");
}

TEST_CASE("an invalid plan of arrivals is refused before anything is trained") {
  struct Arriving {
    struct Rule final : Strategy {
      explicit Rule(const ArrivalPlan& planned) : plan_(planned) {}
      std::string describe() const override { return "arriving"; }
      StrategyTraits traits(int) const override { return {.arrivals = plan_}; }
      RoundPlan plan(const TrainingProgress&) override { return {}; }
      ArrivalPlan plan_;
    };
    ArrivalPlan planned;
    void validate() const {}
    std::unique_ptr<Strategy> make() const { return std::make_unique<Rule>(planned); }
  };
  const auto refusal = [](const ArrivalPlan& planned) {
    auto model = halving();
    auto data = ToyIterator::ofValues({1, 2, 3});
    auto wrapper = wrapperOf(model, 2).strategy(Arriving{planned}).build();
    return thrown<Error>([&] { wrapper.fit(data); });
  };
  const auto starts = [&](const ArrivalPlan& planned, std::string_view text) {
    const std::string problem = refusal(planned);
    CAPTURE(problem);
    CHECK(contains(problem, text));
  };
  starts({.iterations = {0, 5}, .speeds = {1, 1}}, "a worker has at least 1 iteration, got 0");
  starts({.iterations = {1}, .speeds = {1, 1}}, "2 workers need as many speeds and iterations, got 2 and 1");
  starts({.iterations = {1, 1}, .speeds = {1, 0}}, "a speed must be above 0, got 0");
  starts({.iterations = {1, 1}, .speeds = {1, 1}, .grace = -1}, "grace must not be negative, got -1");
  starts({.iterations = {1, 1}, .speeds = {1, 1}, .staleness = -1}, "staleness must not be negative, got -1");
}

TEST_CASE("another wrapper continues from the model's state, and a changed model starts a new one") {
  auto data = ToyIterator::ofValues(kRounds);
  auto model = halving();
  wrapperOf(model, 2).strategy(BlockMomentum{}).build().fit(data);
  auto wrapper = wrapperOf(model, 2).strategy(BlockMomentum{}).build();
  wrapper.fit(data);
  CHECK(model.parameters()[0] == 5);
  model.setParameters({0});
  wrapper.fit(data);
  CHECK(model.parameters()[0] == 4);
  // A strategy without blocks leaves no blocks, and training without a wrapper discards a strategy's state.
  wrapperOf(model, 2).strategy(Averaging{}).build().fit(data);
  CHECK(model.strategyState().empty());
  wrapper.fit(data);
  CHECK_FALSE(model.strategyState().empty());
  model.fit(data);
  CHECK(model.strategyState().empty());
}

TEST_CASE("a merge that fails in the strategy leaves the model at the last merge, and the wrapper usable") {
  struct Failing {
    std::shared_ptr<std::atomic<int>> lands = std::make_shared<std::atomic<int>>(0);
    struct Rule final : Strategy {
      explicit Rule(std::shared_ptr<std::atomic<int>> counted) : lands(std::move(counted)) {}
      std::string describe() const override { return "failing"; }
      RoundPlan plan(const TrainingProgress&) override { return {}; }
      void land(int, const Round& round, MergeOps& ops) override {
        ops.mergeState(round.weights);
        if (++*lands == 3) throw std::runtime_error("no rule");
      }
      std::shared_ptr<std::atomic<int>> lands;
    };
    void validate() const {}
    std::unique_ptr<Strategy> make() const { return std::make_unique<Rule>(lands); }
  };
  auto model = halving();
  auto data = ToyIterator::ofValues(kRounds);
  auto wrapper = wrapperOf(model, 2).strategy(Failing{}).build();
  const auto failure = failureOf(wrapper, data);
  CHECK(contains(failure.text, "failed at the merge after"));
  CHECK(failure.cause == "no rule");
  CHECK(model.parameters()[0] == 2);  // the first merge: the second was aborted
  wrapper.fit(data);
  CHECK(model.parameters()[0] == 3.5);  // from 2: 3, then 3.5
}

namespace {

/// Averages half of the parameters at a time, launched in one round and landed at the end of the next.
struct Alternating {
  std::shared_ptr<std::vector<std::string>> calls = std::make_shared<std::vector<std::string>>();
  void validate() const {}
  std::unique_ptr<Strategy> make() const;
};

class AlternatingStrategy final : public Strategy {
 public:
  explicit AlternatingStrategy(const Alternating& options) : calls_(options.calls) {}
  std::string describe() const override { return "alternating"; }
  std::vector<StrategyBlock> blocks(int) const override { return {{.name = "mean"}}; }
  StrategyTraits traits(int) const override { return {.fragments = 2}; }
  void begin(const Exchange& exchange) override {
    const std::int64_t elements = exchange.block(BlockKind::Parameters).mergedCopy().elements();
    fragments_ = {Fragment{{{0, 16}}}, Fragment{{{16, elements}}}};
  }
  RoundPlan plan(const TrainingProgress& progress) override {
    const int turn = static_cast<int>(progress.rounds % 2);
    return {.launch = FragmentSet::of(turn), .land = FragmentSet::of(1 - turn)};
  }
  void launch(int fragment, const Round& round, MergeOps& ops) override {
    note("launch", fragment, ops);
    ops.mean(ops.block(BlockKind::Parameters).replicas, round.weights, ops.own("mean"), at(fragment));
  }
  void land(int fragment, const Round&, MergeOps& ops) override {
    note("land", fragment, ops);
    const SharedBlock& parameters = ops.block(BlockKind::Parameters);
    ops.combine(parameters.mergedCopies, {{1, ops.own("mean")}}, at(fragment));
    ops.writeBack(parameters.mergedCopies, parameters.replicas, 0, at(fragment));
  }

 private:
  const Fragment& at(int fragment) const { return fragments_[static_cast<std::size_t>(fragment)]; }
  void note(std::string_view what, int fragment, const MergeOps& ops) {
    if (ops.participant() == 0) calls_->push_back(fmt::format("{} {}", what, fragment));
  }
  std::vector<Fragment> fragments_;
  std::shared_ptr<std::vector<std::string>> calls_;  // calls of the first participant
};

std::unique_ptr<Strategy> Alternating::make() const {
  return std::make_unique<AlternatingStrategy>(*this);
}

std::vector<float> trainAlternating(int devices, bool listen, Alternating options = {}) {
  ToyModel model({.size = 40, .training = {.updater = Sgd{.learningRate = 0.5}}});
  ToyIterator data(randomBatches(3, 10, 2, 40), 40);
  auto builder = wrapperOf(model, 2);
  builder.strategy(options).internals({.pretendedDevices = devices});
  if (listen) builder.listeners({std::make_shared<RecordingListener>()});
  builder.build().fit(data, 2);
  return model.parameters();
}

}  // namespace

TEST_CASE("fragments are launched and land as planned, and all of them at the end of an epoch") {
  const Alternating options;
  const auto parameters = trainAlternating(0, false, options);
  // Five rounds, and one without batches at the epoch's end, because fragment 1 was trained since its launch.
  const std::vector<std::string> epoch = {"launch 0", "land 0", "launch 1", "launch 0",
                                          "land 1",   "land 0", "launch 1", "launch 0",
                                          "land 1",   "land 0", "launch 1", "land 1"};
  REQUIRE(options.calls->size() == 24);
  CHECK(std::vector(options.calls->begin(), options.calls->begin() + 12) == epoch);
  CHECK(std::vector(options.calls->begin() + 12, options.calls->end()) == epoch);
  // Neither listeners nor the number of devices change the result.
  CHECK(trainAlternating(0, true) == parameters);
  CHECK(trainAlternating(1, false) == parameters);
  CHECK(trainAlternating(2, true) == parameters);
}

namespace {

/// Averages; the user's model gets a moving average of the merged copies.
struct MovingAverage {
  void validate() const {}
  std::unique_ptr<Strategy> make() const;
};

class MovingAverageStrategy final : public Strategy {
 public:
  std::string describe() const override { return "moving average"; }
  std::vector<StrategyBlock> blocks(int) const override {
    return {{.name = "average", .start = StrategyBlock::Start::Parameters},
            {.name = "rounds", .place = Place::Replica, .numbers = 1}};
  }
  StrategyTraits traits(int) const override { return {.modelSource = "average"}; }
  RoundPlan plan(const TrainingProgress&) override { return {}; }
  void land(int, const Round& round, MergeOps& ops) override {
    ops.mergeState(round.weights);
    const SharedBlock& parameters = ops.block(BlockKind::Parameters);
    const auto average = ops.own("average");
    ops.combine(average, {{0.5, average}, {0.5, parameters.mergedCopies}},
                Fragment::whole(parameters.mergedCopy().elements()));
    ops.own("rounds")[static_cast<std::size_t>(ops.participant())].data<double>()[0] += 1;
  }
};

std::unique_ptr<Strategy> MovingAverage::make() const {
  return std::make_unique<MovingAverageStrategy>();
}

}  // namespace

TEST_CASE(
    "the user's model is filled from the block that the strategy names, and training does not use that "
    "block") {
  // Averaged: 0, 2, 3, 3.5, 3.75; its moving average 1, 2, 2.75, 3.25.
  auto model = halving();
  model.setParameters({0});
  auto data = ToyIterator::ofValues(kRounds);
  auto wrapper = wrapperOf(model, 2).strategy(MovingAverage{}).build();
  wrapper.fit(data);
  CHECK(model.parameters()[0] == 2);
  wrapper.fit(data);
  CHECK(model.parameters()[0] == 3.25f);
  REQUIRE(model.strategyState().size() == 2);
  const Tensor& rounds = model.strategyState()[1].values;
  CHECK(rounds.shape() == Shape{2, 1});
  CHECK(rounds.data<double>()[0] == 4);
  CHECK(rounds.data<double>()[1] == 4);
}

TEST_CASE("options that are out of range, or given twice in different ways, are refused at build()") {
  auto model = halving();
  const auto refusal = [](auto builder) { return thrown<InvalidArgument>([&] { builder.build(); }); };
  CHECK(refusal(wrapperOf(model, 2).strategy(BlockMomentum{.momentum = 1})) ==
        "blockMomentum: momentum must be in [0, 1), got 1");
  CHECK(refusal(wrapperOf(model, 2).strategy(Averaging{.frequency = 0})) ==
        "averaging: every must be between 1 and 1099511627776, got 0");
  CHECK(refusal(wrapperOf(model, 2).strategy(Averaging{}).averagingFrequency(3)) ==
        "averagingFrequency: the strategy has that among its own options; give it in strategy(...)");
  CHECK(refusal(wrapperOf(model, 2).strategy(Averaging{}).averageUpdaters(true)) ==
        "averageUpdaters: the strategy has that among its own options; give it in strategy(...)");
  auto data = ToyIterator::ofValues(kRounds);
  CHECK(thrown<TrainingError>(
            [&] { wrapperOf(model, 2).strategy(BlockMomentum{.frequency = 0}).build().fit(data); }) ==
        "the first round could not be planned: the strategy's plan: a round must have at least 1 iteration, "
        "got 0");
}

TEST_CASE("Averaging as a struct trains as the builder's options do, and Reset sets momentum to zero") {
  const auto train = [](auto configure) {
    ToyModel model({.size = 5, .training = halfNesterovs()});
    ToyIterator data(randomBatches(11, 9, 3, 5), 5);
    auto builder = ParallelWrapper::Builder(model);
    configure(builder.workers(2).pinThreads(false));
    builder.build().fit(data, 2);
    auto state = model.parameters();
    const auto velocity = model.updaterState("velocity");
    state.insert(state.end(), velocity.begin(), velocity.end());
    return state;
  };
  using Builder = ParallelWrapper::Builder;
  CHECK(train([](Builder& b) { b.strategy(Averaging{.frequency = 3}); }) ==
        train([](Builder& b) { b.averagingFrequency(3); }));
  CHECK(train([](Builder& b) {
          b.strategy(Averaging{.frequency = 2, .updaterState = UpdaterState::Keep});
        }) == train([](Builder& b) { b.averagingFrequency(2).averageUpdaters(false); }));
  CHECK(train([](Builder& b) { b.strategy(SynchronousGradients{}); }) ==
        train([](Builder& b) { b.trainingMode(TrainingMode::SynchronousGradients); }));
  CHECK(train([](Builder& b) { b.strategy(SharedGradients{}); }) ==
        train([](Builder& b) { b.trainingMode(TrainingMode::SharedGradients); }));
  const auto reset =
      train([](Builder& b) { b.strategy(Averaging{.frequency = 2, .updaterState = UpdaterState::Reset}); });
  CHECK(std::all_of(reset.begin() + 5, reset.end(), [](float velocity) { return velocity == 0; }));
  CHECK(reset != train([](Builder& b) { b.averagingFrequency(2); }));
}

TEST_CASE("averageUpdaters(false): a changed model trains with its own momentum again") {
  const auto trainTwice = [](bool changed) {
    ToyModel model({.training = halfNesterovs()});
    auto data = ToyIterator::ofValues({4, 4, 4});
    auto wrapper = toyWrapper(model, 1).averageUpdaters(false).build();
    wrapper.fit(data);
    if (changed) {
      for (auto* block : model.state())
        if (block->kind == BlockKind::UpdaterState) copy(Tensor::zeros(block->values.shape()), block->values);
      model.setParameters({0});
      model.setCounters(0, 0);
    }
    wrapper.fit(data);
    return model.parameters()[0];
  };
  ToyModel alone({.training = halfNesterovs()});
  auto data = ToyIterator::ofValues({4, 4, 4});
  alone.fit(data);
  CHECK(trainTwice(true) == alone.parameters()[0]);
  alone.fit(data);
  CHECK(trainTwice(false) == alone.parameters()[0]);
}

TEST_CASE("a stop requested before fit() is not lost") {
  auto model = halving();
  auto data = ToyIterator::ofValues(kRounds);
  auto wrapper = wrapperOf(model, 2).build();
  std::stop_source stop;
  wrapper.fit(data, 1, stop.get_token());
  CHECK(model.epoch() == 1);
  stop.request_stop();
  wrapper.fit(data, 1000000, stop.get_token());
  CHECK(model.epoch() == 1);
  CHECK(model.iteration() == 2);
}
