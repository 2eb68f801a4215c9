// Promises 6 and 7 with real networks: convolutions, dropout, momentum, several threads per worker.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "muster/core/base/random.h"
#include "muster/core/data/in_memory.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/parallel_wrapper.h"

using namespace muster;

namespace {

constexpr std::int64_t kClasses = 5;

/// Images that depend on the class, so that the network can learn.
InMemoryDataSetIterator images(std::int64_t examples, std::int64_t batch) {
  Tensor features = Tensor::empty({examples, 1, 12, 12}), labels = Tensor::empty({examples}, DType::Int64);
  const RandomStream random(5, "images");
  for (std::int64_t n = 0; n < examples; ++n) {
    const auto label = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(n), kClasses));
    labels.data<std::int64_t>()[n] = label;
    for (std::int64_t i = 0; i < 144; ++i)
      features.data<float>()[n * 144 + i] =
          static_cast<float>(random.normal(static_cast<std::uint64_t>(1000000 + n * 144 + i)) * 0.5 +
                             (i / 12 == 2 * label ? 1.0 : 0.0));
  }
  return {features, labels, batch};
}

std::vector<Layer> convnet() {
  return {Conv2d{.outChannels = 6, .kernel = {3, 3}}, MaxPool2d{},
          Dense{.units = 20, .activation = Activation::ReLU}, Output{.classes = kClasses}};
}

/// A smooth network: rounding is not amplified, so a hundred steps can be compared.
std::vector<Layer> smoothNet() {
  return {Conv2d{.outChannels = 6, .kernel = {3, 3}, .activation = Activation::Tanh}, AveragePool2d{},
          Dropout{.rate = 0.25}, Dense{.units = 20, .activation = Activation::Tanh},
          Output{.classes = kClasses}};
}

std::unique_ptr<MultiLayerNetwork> network(std::vector<Layer> layers, Updater updater, double clipNorm = 0) {
  auto model = std::make_unique<MultiLayerNetwork>(MultiLayerConfiguration{.seed = 9,
                                                                           .updater = std::move(updater),
                                                                           .l2 = 1e-3,
                                                                           .clipNorm = clipNorm,
                                                                           .inputShape = {1, 12, 12},
                                                                           .layers = std::move(layers)});
  model->init();
  return model;
}

ParallelWrapper::Builder synchronous(Model& model, int workers) {
  auto builder = ParallelWrapper::Builder(model);
  builder.workers(workers).trainingMode(TrainingMode::SynchronousGradients);
  return builder;
}

const Tensor& parameters(Model& model) {
  return model.block(BlockKind::Parameters).values;
}

bool sameBits(Model& a, Model& b) {
  return std::memcmp(parameters(a).raw(), parameters(b).raw(), parameters(a).bytes()) == 0;
}

/// |a - b| / |b|, Euclidean, over the parameter block.
double distance(Model& a, Model& b) {
  double difference = 0, norm = 0;
  for (std::int64_t i = 0; i < parameters(a).elements(); ++i) {
    const double x = parameters(a).data<float>()[i], y = parameters(b).data<float>()[i];
    difference += (x - y) * (x - y);
    norm += y * y;
  }
  return std::sqrt(difference / norm);
}

}  // namespace

TEST_CASE("one worker gives the bits of model.fit(), at any frequency") {
  auto alone = network(convnet(), Adam{.learningRate = WarmUpSchedule{.iterations = 5, .then = 0.01}});
  auto data = images(100, 16);
  alone->fit(data, 3);
  for (const std::int64_t frequency : {1, 3, 50}) {
    auto model = network(convnet(), Adam{.learningRate = WarmUpSchedule{.iterations = 5, .then = 0.01}});
    ParallelWrapper::Builder(*model).workers(1).averagingFrequency(frequency).build().fit(data, 3);
    CHECK(sameBits(*model, *alone));
    CHECK(model->iteration() == alone->iteration());
    CHECK(model->epoch() == 3);
  }
}

TEST_CASE(
    "averaging every iteration equals one worker on the joined batches: convnet, one step, within 1e-5") {
  for (const int workers : {2, 3, 4}) {
    auto wide = network(convnet(), Nesterovs{.learningRate = 0.05});
    auto narrow = network(convnet(), Nesterovs{.learningRate = 0.05});
    auto joined = images(workers * 16, workers * 16);
    auto split = images(workers * 16, 16);
    wide->fit(joined);
    ParallelWrapper::Builder(*narrow).workers(workers).build().fit(split);
    CHECK(distance(*narrow, *wide) < 1e-5);
  }
}

TEST_CASE(
    "averaging equals joined batches over a hundred steps with dropout and an uneven end, within 1e-5") {
  // 530 examples: 17 joined batches of 32 per epoch, the last of 18, which two workers get as 16 and 2.
  for (const bool momentum : {false, true}) {
    const Updater updater =
        momentum ? Updater(Nesterovs{.learningRate = 0.02}) : Updater(Sgd{.learningRate = 0.05});
    auto wide = network(smoothNet(), updater);
    auto narrow = network(smoothNet(), updater);
    auto joined = images(530, 32);
    auto split = images(530, 16);
    wide->fit(joined, 6);
    ParallelWrapper::Builder(*narrow).workers(2).build().fit(split, 6);
    CHECK(wide->iteration() == 6 * 17);
    CHECK(narrow->iteration() == wide->iteration());
    MESSAGE("distance after 102 steps: " << distance(*narrow, *wide));
    CHECK(distance(*narrow, *wide) < 1e-5);
  }
}

TEST_CASE("synchronous gradients equal one worker on the joined batches: convnet, one step, within 1e-5") {
  for (const int workers : {2, 3, 4}) {
    auto wide = network(convnet(), Adam{.learningRate = 0.01});
    auto narrow = network(convnet(), Adam{.learningRate = 0.01});
    auto joined = images(workers * 16, workers * 16);
    auto split = images(workers * 16, 16);
    wide->fit(joined);
    synchronous(*narrow, workers).build().fit(split);
    CHECK(distance(*narrow, *wide) < 1e-5);
  }
}

// Adam and similar updaters divide a gradient by its own size, which amplifies rounding near 0, so many steps
// are compared in float64 (joined_batches_test).
TEST_CASE("synchronous gradients equal joined batches over a hundred steps with an uneven end, within 1e-5") {
  const std::vector<Updater> updaters = {Sgd{.learningRate = 0.05}, Nesterovs{.learningRate = 0.02}};
  for (const auto& updater : updaters)
    for (const int workers : {2, 3}) {
      auto wide = network(smoothNet(), updater, 0.5);
      auto narrow = network(smoothNet(), updater, 0.5);
      auto joined = images(530, 16 * workers);
      auto split = images(530, 16);
      wide->fit(joined, workers * 3);
      synchronous(*narrow, workers).build().fit(split, workers * 3);
      CHECK(narrow->iteration() == wide->iteration());
      CHECK(narrow->iteration() >= 100);
      MESSAGE("distance after " << narrow->iteration() << " steps: " << distance(*narrow, *wide));
      CHECK(distance(*narrow, *wide) < 1e-5);
    }
}

TEST_CASE(
    "the convnet's distance over a hundred steps is logged, because ties of ReLU and pooling amplify "
    "rounding") {
  auto wide = network(convnet(), Nesterovs{.learningRate = 0.02});
  auto summed = network(convnet(), Nesterovs{.learningRate = 0.02});
  auto averaged = network(convnet(), Nesterovs{.learningRate = 0.02});
  auto joined = images(530, 32);
  auto split = images(530, 16);
  wide->fit(joined, 6);
  synchronous(*summed, 2).build().fit(split, 6);
  ParallelWrapper::Builder(*averaged).workers(2).build().fit(split, 6);
  MESSAGE("distance after " << wide->iteration() << " steps: synchronous " << distance(*summed, *wide)
                            << ", averaged every iteration " << distance(*averaged, *wide));
  CHECK(std::isfinite(distance(*summed, *wide)));
  CHECK(std::isfinite(distance(*averaged, *wide)));
}

TEST_CASE("training has the same bits on every run, for one to four workers and for two threads a worker") {
  for (const int workers : {1, 2, 3, 4})
    for (const int threads : {1, 2}) {
      CAPTURE(workers);
      CAPTURE(threads);
      const auto train = [&] {
        auto model = network(smoothNet(), Nesterovs{.learningRate = 0.02});
        auto data = images(200, 16);
        ParallelWrapper::Builder(*model)
            .workers(workers)
            .threadsPerWorker(threads)
            .averagingFrequency(3)
            .build()
            .fit(data, 2);
        return model;
      };
      auto first = train(), second = train();
      CHECK(sameBits(*first, *second));
    }
}

TEST_CASE("four workers learn to classify images that they have not seen") {
  auto model = network(convnet(), Nesterovs{.learningRate = 0.05});
  auto data = images(1000, 16);
  ParallelWrapper::Builder(*model).workers(4).averagingFrequency(3).build().fit(data, 4);
  auto unseen = images(1300, 1300);
  Batch batch;
  unseen.reset(0);
  REQUIRE(unseen.next(batch));
  const Tensor out = model->output(batch.features[0].value);
  int right = 0;
  for (std::int64_t n = 1000; n < 1300; ++n) {
    const float* row = out.data<float>() + n * kClasses;
    right += std::max_element(row, row + kClasses) - row == batch.labels[0].value.data<std::int64_t>()[n];
  }
  CHECK(right > 290);
}
