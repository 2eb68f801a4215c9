#include "muster/core/listeners/merged_model_average.h"

#include "muster/core/nn/multi_layer_network.h"
#include "muster/core/nn/recompute_statistics.h"
#include "tests/parallel/builder_of.h"
#include "tests/support/batch_of.h"
#include "tests/support/list_iterator.h"
#include "tests/support/on_merge.h"
#include "tests/support/test.h"
#include "tests/support/toy_wrapper.h"

namespace muster::test {
namespace {

constexpr std::int64_t kWidth = 33;

std::shared_ptr<MergedModelAverage> averageOf(const MergedModelAverageOptions& options) {
  return std::make_shared<MergedModelAverage>(options);
}

ToyModel toy() {
  return ToyModel({.size = kWidth, .training = halfNesterovs(), .statistics = true});
}

using Rule = std::optional<AnyStrategy>;

/// Trains with a strategy, or without one by Model::fit.
void train(Model& model, const Rule& rule, const Listeners& listeners, std::int64_t epochs) {
  ToyIterator data(randomBatches(5, 11, 4, kWidth, /*ragged=*/true), kWidth);
  if (rule) return builderOf(model, 3, *rule).listeners(listeners).build().fit(data, epochs);
  fitWith(model, 0, data, epochs, listeners);
  model.setListeners({});
}

std::vector<float> parametersOf(MergedModelAverage& average) {
  return dynamic_cast<ToyModel&>(average.model()).parameters();
}

/// Trains on the value 1 with SGD that moves halfway: p = 1 - 2^-n after n steps.
std::vector<float> averageOfHalves(const MergedModelAverageOptions& options, int steps) {
  ToyModel model({.training = {.updater = Sgd{.learningRate = 0.5}}});
  auto data = ToyIterator::ofValues(std::vector<float>(static_cast<std::size_t>(steps), 1));
  const auto average = averageOf(options);
  model.setListeners({average});
  model.fit(data);
  return parametersOf(*average);
}

TEST_CASE("with decay 0 the average is the merged model, bit for bit") {
  for (const Rule& rule : {Rule(), Rule(Averaging{.frequency = 2}),
                           Rule(OuterAveraging{.frequency = 2, .momentum = 0.5, .nesterov = true}),
                           Rule(Gossip{.graph = GossipGraph::Ring})}) {
    auto model = toy();
    const auto average = averageOf({.decay = 0});
    train(model, rule, {average}, 2);
    CHECK(parametersOf(*average) == model.parameters());
    CHECK(average->model().iteration() == model.iteration());
  }
}

TEST_CASE("averages equal those worked out by hand") {
  // Models 1/2, 3/4, 7/8. Equal weights: 17/24.
  CHECK(averageOfHalves({.decay = {}}, 3)[0] == static_cast<float>(17.0 / 24));
  // d = 2/11, then 3/12.
  const double two = 2.0 / 11 * 0.5 + 9.0 / 11 * 0.75;
  CHECK(averageOfHalves({}, 3)[0] == static_cast<float>(0.25 * two + 0.75 * 0.875));
  CHECK(averageOfHalves({.decay = 0.125}, 3)[0] ==
        static_cast<float>(0.125 * (0.125 * 0.5 + 0.875 * 0.75) + 0.875 * 0.875));
  // Only iterations 4 and 6 count: 15/16 and 63/64.
  CHECK(averageOfHalves({.decay = {}, .start = 4, .every = 2}, 7)[0] ==
        static_cast<float>((15.0 / 16 + 63.0 / 64) / 2));
}

TEST_CASE("a merge counts once even if the iteration passed several multiples since the last one") {
  ToyModel model({.training = {.updater = Sgd{.learningRate = 0.5}}});
  auto data = ToyIterator::ofValues(std::vector<float>(10, 1));
  const auto average = averageOf({.decay = {}, .start = 3, .every = 2});
  toyWrapper(model, 1, 3).listeners({average}).build().fit(data);
  // Merges after 3, 6, 9 and 10 iterations; multiples of 2 lie before each of them.
  CHECK(average->count() == 4);
  const auto p = [](int n) { return 1 - std::ldexp(1.0, -n); };
  CHECK(parametersOf(*average)[0] == static_cast<float>((p(3) + p(6) + p(9) + p(10)) / 4));
}

TEST_CASE("the average of equal models is that model, bit for bit") {
  for (const std::optional<double> decay : {std::optional<double>{}, {0.999}, {0.3}}) {
    ToyModel model({.size = kWidth, .training = {.updater = Sgd{.learningRate = 0}}});
    std::vector<float> values;
    for (std::int64_t i = 0; i < kWidth; ++i) values.push_back(std::sin(static_cast<float>(i)) / 3);
    model.setParameters(values);
    const auto average = averageOf({.decay = decay});
    train(model, Averaging{}, {average}, 25);
    CHECK(average->count() == 100);
    CHECK(parametersOf(*average) == values);
  }
}

TEST_CASE("a training with an average computes the same bits as without") {
  for (const Rule& rule :
       {Rule(), Rule(Averaging{.frequency = 3, .updaterState = UpdaterState::Keep}),
        Rule(OuterAveraging{.frequency = 2, .momentum = 0.5, .nesterov = true}),
        Rule(ElasticAveraging{.frequency = 2}), Rule(Gossip{.frequency = 2}), Rule(SynchronousGradients{})}) {
    auto with = toy(), without = toy();
    const auto average = averageOf({}), other = averageOf({.decay = {}, .every = 3});
    train(with, rule, {average, other}, 3);
    train(without, rule, {}, 3);
    CHECK(stateBits(with) == stateBits(without));
    CHECK(average->count() > other->count());
  }
}

TEST_CASE(
    "an average resumes from the model's state to the same bits, wherever its listener is in the list") {
  for (const bool last : {false, true})
    for (const std::int64_t every : {1, 3}) {
      CAPTURE(last);
      CAPTURE(every);
      const MergedModelAverageOptions options{.decay = 0.9, .every = every};
      auto whole = toy(), resumed = toy();
      const auto reference = averageOf(options);
      // Simulates a checkpoint at the end of the second epoch, before or after the average has seen the last
      // merge.
      const auto copying = onMerge([&](const MergeEvent& event) {
        if (event.trainer.model().iteration() == 8) resumed.copyStateFrom(whole);
      });
      train(whole, SynchronousGradients{},
            last ? Listeners{copying, reference} : Listeners{reference, copying}, 4);
      REQUIRE(resumed.iteration() == 8);
      resumed.setCounters(8, 2);
      const auto continued = averageOf(options);
      train(resumed, SynchronousGradients{}, {continued}, 2);
      CHECK(stateBits(resumed) == stateBits(whole));
      CHECK(continued->count() == reference->count());
      CHECK(parametersOf(*continued) == parametersOf(*reference));
    }
}

TEST_CASE("the averaged model is filled anew at each call, and a model that is reset drops its average") {
  MultiLayerNetwork network(
      {.updater = Nesterovs{.learningRate = 0.1},
       .inputShape = {2},
       .layers = {Dense{.units = 3, .activation = Activation::Tanh}, BatchNorm{}, Output{.classes = 2}}});
  std::vector<Batch> batches;
  for (int b = 0; b < 5; ++b)
    batches.push_back(
        batchOf(Tensor::of({0.5f * b, 1, -1, 0.25f * b}, {2, 2}), Tensor::of({1, 0, 0, 1}, {2, 2})));
  ListIterator data(batches);
  const auto average = averageOf({.decay = 0.9});
  network.setListeners({average});
  network.fit(data, 2);
  CHECK(average->count() == 10);
  const auto bits = stateBits(average->model());
  recomputeStatistics(average->model(), data);
  CHECK(stateBits(average->model()) == bits);
  network.init();
  CHECK(network.listenerState().empty());
}

TEST_CASE("a second fit() continues the average; other options or a model that was reset start a new one") {
  auto model = toy();
  const auto average = averageOf({});
  train(model, Averaging{}, {average}, 2);
  CHECK(average->count() == 8);
  train(model, Averaging{}, {average}, 1);
  CHECK(average->count() == 12);
  const auto other = averageOf({.decay = 0.5}), same = averageOf({});
  train(model, Averaging{}, {other, average, same}, 1);
  CHECK(textOf(other->count(), average->count(), same->count()) == "4 16 16");
  CHECK(parametersOf(*same) == parametersOf(*average));
  CHECK(model.listenerState().size() == 4);
  model.setCounters(0, 0);
  train(model, Averaging{}, {average}, 1);
  CHECK(average->count() == 4);
}

TEST_CASE("options out of range are refused by name, and so is model() before the first merge") {
  const std::string who = "merged model average: ";
  CHECK_REFUSED(averageOf({.decay = 1}), who + "decay must be in [0, 1), got 1");
  CHECK_REFUSED(averageOf({.decay = std::nan("")}), who + "decay must be in [0, 1), got nan");
  CHECK_REFUSED(averageOf({.start = -1}), who + "start cannot be negative, got -1");
  CHECK_REFUSED(averageOf({.every = 0}), who + "every must be at least 1, got 0");
  CHECK_REFUSED(averageOf({})->model(), who + "no model has counted yet");
}

}  // namespace
}  // namespace muster::test
