// An updater that a rule resets starts anew, its count of updates included: each expected value is computed
// with new optimisers, one for each worker's round.

#include "muster/core/data/in_memory.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/strategies.h"
#include "tests/parallel/resumable.h"
#include "tests/parallel/rule_wrapper.h"
#include "tests/support/temporary_directory.h"

using namespace muster;
using namespace muster::test;

namespace {

const std::vector<Updater> kCorrecting{Adam{.learningRate = 0.125}, AdamW{.learningRate = 0.125}};

ToyModel toy(const Updater& updater) {
  return ToyModel({.training = {.updater = updater}});
}

/// Where a new optimiser comes from `begin` by batches of these values.
float afterNewOptimiser(const Updater& updater, float begin, const std::vector<float>& values) {
  auto model = toy(updater);
  model.setParameters({begin});
  auto data = ToyIterator::ofValues(values);
  model.fit(data);
  return model.parameters()[0];
}

}  // namespace

TEST_CASE("a worker's rounds after a reset are those of new optimisers, bit for bit") {
  for (const Updater& updater : kCorrecting) {
    CAPTURE(updater.type());
    auto model = toy(updater);
    auto data = ToyIterator::ofValues({8, 4, 8, -4, 8, 4, 2});
    wrapperOf(model, 1, Averaging{.frequency = 2, .updaterState = UpdaterState::Reset}).fit(data);
    float expected = 0;
    for (const std::vector<float>& round : {std::vector<float>{8, 4}, {8, -4}, {8, 4}, {2}})
      expected = afterNewOptimiser(updater, expected, round);
    CHECK(model.parameters()[0] == expected);
    CHECK(model.updates() == 0);
    CHECK(model.iteration() == 7);
  }
}

TEST_CASE("after such a fit the model's own steps are those of a new optimiser, also from a file") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "model.safetensors";
  const auto network = [] {
    return MultiLayerNetwork(
        {.updater = Adam{.learningRate = 0.125},
         .inputShape = {1},
         .layers = {
             Output{.classes = 1, .loss = Loss::MeanSquaredError, .activation = Activation::Identity}}});
  };
  auto trained = network();
  trained.init();
  InMemoryDataSetIterator rounds(Tensor::of({1, 1, 1, 1, 1}, {5, 1}), Tensor::of({3, 3, 3, 3, 3}, {5, 1}), 1),
      one(Tensor::of({1}, {1, 1}), Tensor::of({3}, {1, 1}), 1);
  wrapperOf(trained, 2, Averaging{.updaterState = UpdaterState::Reset}).fit(rounds);
  REQUIRE(trained.iteration() == 3);
  auto fresh = network();
  fresh.init();
  copy(trained.block(BlockKind::Parameters).values, fresh.block(BlockKind::Parameters).values);
  trained.save(path);
  const auto loaded = MultiLayerNetwork::load(path);
  CHECK(loaded->updates() == 0);
  for (MultiLayerNetwork* model : {&trained, loaded.get(), &fresh}) model->fit(one);
  const auto weights = [](MultiLayerNetwork& model) {
    const auto values = model.block(BlockKind::Parameters).values.span<float>();
    return std::vector(values.begin(), values.end());
  };
  CHECK(weights(trained) == weights(fresh));
  CHECK(weights(*loaded) == weights(fresh));
  CHECK(trained.updates() == 1);
}

TEST_CASE("bmuf's workers begin each round with new optimisers") {
  // W and the momentum D in float64: each round W moves by D = 0.5 D + (mean - W).
  for (const Updater& updater : kCorrecting) {
    CAPTURE(updater.type());
    auto model = toy(updater);
    auto data = ToyIterator::ofValues({8, -2, 4, 6, 8, 1, 2, 2});
    auto bmuf = OuterAveraging::bmuf(2);
    bmuf.frequency = 2;
    wrapperOf(model, 2, bmuf).fit(data, 2);
    double outer = 0, momentum = 0;
    for (int epoch = 0; epoch < 2; ++epoch)
      for (const auto& [first, second] :
           {std::pair<std::vector<float>, std::vector<float>>{{8, 4}, {-2, 6}}, {{8, 2}, {1, 2}}}) {
        const auto begin = static_cast<float>(outer);
        const double mean = (static_cast<double>(afterNewOptimiser(updater, begin, first)) +
                             afterNewOptimiser(updater, begin, second)) /
                            2;
        momentum = 0.5 * momentum + mean - outer;
        outer += momentum;
      }
    CHECK(model.parameters()[0] == doctest::Approx(outer).epsilon(1e-5));
    CHECK(model.updates() == 0);
  }
}

TEST_CASE("a worker that arrives alone begins with a new optimiser, the others count on") {
  // Two workers of equal speed arrive in turn, each with half of its move.
  for (const Updater& updater : kCorrecting)
    for (const bool listens : {false, true}) {  // with a listener all workers wait at each landing
      CAPTURE(updater.type());
      auto model = toy(updater);
      auto data = ToyIterator::ofValues({8, -2, 4, 6, 8, 1, 2, 2});
      wrapperOf(model, 2, AsynchronousOuter{.frequency = 2, .updaterState = UpdaterState::Reset}, 0,
                listens ? Listeners{std::make_shared<Listener>()} : Listeners{})
          .fit(data);
      double global = 0;
      float taken[2] = {0, 0};
      const std::vector<float> rounds[2][2] = {{{8, 4}, {-2, 6}}, {{8, 2}, {1, 2}}};
      for (const auto& round : rounds)
        for (int w = 0; w < 2; ++w) {
          global += 0.5 * (static_cast<double>(afterNewOptimiser(updater, taken[w], round[w])) - taken[w]);
          taken[w] = static_cast<float>(global);
        }
      CHECK(model.parameters()[0] == doctest::Approx(global).epsilon(1e-5));
    }
}

TEST_CASE("from a model without its training, workers begin with new optimisers, also between two resets") {
  for (const Updater& updater : kCorrecting) {
    CAPTURE(updater.type());
    const OverlappedAveraging late{.frequency = 3, .delay = 1, .updaterState = UpdaterState::Reset};
    std::vector<Held> atMerges;
    auto trained = toy(updater);
    auto rounds = ToyIterator::ofValues({8, -2, 4, 6, 8, 1, 2, 2, 5, 3, 1, 7});
    wrapperOf(trained, 2, late, 0, {std::make_shared<Holder>(&atMerges)}).fit(rounds);
    // Launched after iterations 2 and 5, landed after 3: the third time each worker has taken two steps.
    REQUIRE(atMerges.size() == 5);
    Held& held = atMerges[2];
    held.training.clear();
    for (const bool sameRule : {true, false}) {
      CAPTURE(sameRule);
      auto model = toy(updater);
      held.giveTo(model);
      const float begin = model.parameters()[0];
      auto data = ToyIterator::ofValues({8, 4});
      if (sameRule)
        wrapperOf(model, 2, late).fit(data);
      else
        wrapperOf(model, 2, Gossip{.updaterState = UpdaterState::Reset}).fit(data);
      const double mean = (static_cast<double>(afterNewOptimiser(updater, begin, {8})) +
                           afterNewOptimiser(updater, begin, {4})) /
                          2;
      CHECK(model.parameters()[0] == doctest::Approx(mean).epsilon(1e-5));
    }
  }
}

TEST_CASE("a model that goes back in its schedule keeps the updates that its moments hold") {
  auto model = toy(Adam{.learningRate = 0.125});
  auto data = ToyIterator::ofValues({8, 4, 8});
  model.fit(data);
  CHECK(model.updates() == 3);
  model.setCounters(0, 0);
  CHECK(model.updates() == 3);
  auto other = toy(Adam{.learningRate = 0.125});
  other.copyStateFrom(model, /*withUpdaterState=*/false);
  CHECK(other.updates() == 0);  // its moments are zero
  model.setCounters(7, 1);
  other.copyStateFrom(model, /*withUpdaterState=*/false);
  CHECK(other.iteration() == 7);
  CHECK(other.updates() == 0);
}
