#include "muster/core/data/in_memory.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/training/internals.h"
#include "tests/parallel/builder_of.h"
#include "tests/parallel/every_rule.h"
#include "tests/support/on_merge.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr std::int64_t kOddWidth = 37;  // more than a cache line, and no multiple of one

std::vector<TrainingOptions> everyKindOfTraining() {
  return {{.updater = Sgd{.learningRate = 0.3}},
          {.updater = Nesterovs{.learningRate = 0.1, .momentum = 0.9}, .l2 = 0.01},
          {.updater = Adam{.learningRate = CosineSchedule{.initial = 0.1, .iterations = 20}}},
          {.updater = Nesterovs{.learningRate = StepSchedule{.initial = 0.2, .decay = 0.5, .every = 4}},
           .clipNorm = 0.5},
          {.updater = RmsProp{.learningRate = WarmUpSchedule{.iterations = 6, .then = 0.05}}, .l1 = 0.001},
          {.updater = AdaGrad{.learningRate = 0.1}, .weightDecay = 0.01, .clipValue = 0.3},
          {.updater = AdamW{.learningRate = 0.05}}};
}

/// Checks that a worker under the rule trains as the model alone, with and without a listener, and sends
/// nothing.
void checkLikeAlone(const AnyStrategy& rule, int devices) {
  for (const auto& training : everyKindOfTraining())
    for (const bool listens : {false, true}) {
      INFO("updater ", training.updater.type(), ", rule ", rule.make()->describe(), ", devices ", devices);
      const ToyOptions options{.size = kOddWidth, .training = training, .statistics = true};
      ToyIterator data(randomBatches(3, 8, 5, kOddWidth, true), kOddWidth);
      ToyModel alone(options), wrapped(options);
      std::int64_t bytes = 0;
      const auto counting = onMerge([&](const MergeEvent& event) { bytes += event.bytes; });
      auto wrapper = builderOf(wrapped, 1, rule)
                         .internals({.pretendedDevices = devices})
                         .listeners(listens ? Listeners{counting} : Listeners{})
                         .build();
      for (const std::int64_t epochs : {2, 1}) {
        alone.fit(data, epochs);
        wrapper.fit(data, epochs);
      }
      CHECK(alone.allBits() == wrapped.allBits());
      CHECK(bytes == 0);
    }
}

}  // namespace

TEST_CASE("workers(1) equals model.fit() bit for bit, at any frequency") {
  for (const std::int64_t frequency : {1, 2, 3, 7}) checkLikeAlone(Averaging{.frequency = frequency}, 0);
}

TEST_CASE("one worker equals model.fit() under every rule that promises it") {
  using Eager = OverlappedAveraging::Eager;
  std::vector<AnyStrategy> rules = {Averaging{.frequency = 2, .updaterState = UpdaterState::Keep},
                                    SynchronousGradients{},
                                    SharedGradients{},
                                    OuterAveraging{.frequency = 2},
                                    ElasticAveraging::sma(),
                                    Adasum{.frequency = 3},
                                    Gossip{.frequency = 2},
                                    HierarchicalAveraging{.levels = {{.period = 2}}},
                                    StreamingOuter{.frequency = 4, .fragments = 1, .delay = 0},
                                    StreamingOuter{.frequency = 4, .fragments = 1, .mixing = 1},
                                    AsynchronousOuter{.frequency = 3}};
  for (const std::int64_t delay : {1, 2, 3}) {
    rules.emplace_back(OverlappedAveraging{.frequency = 4, .delay = delay});
    rules.emplace_back(OverlappedAveraging{.frequency = 4, .delay = delay, .landing = Eager{}});
  }
  for (const AnyStrategy& rule : rules)
    for (const int devices : {0, 1}) checkLikeAlone(rule, devices);
}

TEST_CASE("averageUpdaters(false): after init() momentum starts at zero, as in a new wrapper and in fit()") {
  const auto make = [] {
    auto model = std::make_unique<MultiLayerNetwork>(MultiLayerConfiguration{
        .seed = 9,
        .updater = Nesterovs{.learningRate = 0.1, .momentum = 0.9},
        .inputShape = {kOddWidth},
        .layers = {Dense{.units = 6, .activation = Activation::Tanh}, Output{.classes = 3}}});
    model->init();
    return model;
  };
  Tensor features = Tensor::empty({40, kOddWidth}), labels = Tensor::empty({40}, DType::Int64);
  for (std::int64_t i = 0; i < features.elements(); ++i)
    features.data<float>()[i] = static_cast<float>(i * 7 % 11) / 11;
  for (std::int64_t n = 0; n < 40; ++n) labels.data<std::int64_t>()[n] = n % 3;
  InMemoryDataSetIterator data(features, labels, 4);
  for (const int workers : {1, 3}) {
    CAPTURE(workers);
    const auto trained = [&](bool before) {
      const auto model = make();
      auto wrapper = toyWrapper(*model, workers, 2).averageUpdaters(false).build();
      if (before) {
        wrapper.fit(data);
        model->init();
      }
      wrapper.fit(data, 2);
      return stateBits(*model);
    };
    const auto again = trained(true);
    CHECK(again == trained(false));
    if (workers > 1) continue;
    const auto alone = make();
    alone->fit(data, 2);
    CHECK(again == stateBits(*alone));
  }
}
