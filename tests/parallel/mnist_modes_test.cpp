// On the real MNIST: the accuracy and the bytes of shared encoded updates, and the accuracy of bf16.
#include <doctest/doctest.h>

#include "muster/core/device/math_mode.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/models/convnet.h"
#include "muster/core/nn/models/mlp.h"
#include "muster/datasets/mnist.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/support/environment.h"
#include "tests/support/on_merge.h"
#include "tests/support/sanitizers.h"
#include "tests/support/skip.h"
#include "tests/support/whole.h"

using namespace muster;

namespace {

struct Outcome {
  double accuracy = 0;
  double denseShare = 0;  ///< bytes per worker and step, divided by 4 P
};

/// The convolutional network if tests run whole; else a perceptron, which trains in a tenth of the time.
MultiLayerConfiguration chosen() {
  if (test::whole()) return convnet();
  auto network = mlp({128}, 10);
  network.seed = 123;
  network.updater = Nesterovs{.learningRate = 0.02, .momentum = 0.9};
  network.inputShape = {1, 28, 28};
  return network;
}

Outcome train(const MultiLayerConfiguration& network, TrainingMode mode, const std::string& data,
              MathMode mathMode = MathMode::Float32, std::int64_t epochs = 3) {
  MnistDataSetIterator training(128, true, 12345, {.directory = data}),
      test(1000, false, 12345, {.directory = data});
  MultiLayerNetwork model(network);
  model.init();
  std::int64_t sent = 0;
  ParallelWrapper::Builder(model)
      .workers(2)
      .trainingMode(mode)
      .mathMode(mathMode)
      .listeners({test::onMerge([&](const MergeEvent& event) { sent += event.bytes; })})
      .build()
      .fit(training, epochs);
  const double dense = 4.0 * model.block(BlockKind::Parameters).values.elements() * model.iteration();
  return {model.evaluate(test).accuracy(), static_cast<double>(sent) / dense};
}

}  // namespace

TEST_CASE("shared gradients are as accurate as synchronous ones to half a point, at a tenth of the bytes") {
  if (test::kSanitized) return test::skip("three epochs of MNIST take too long under a sanitizer");
  const char* const data = test::realDataDir();
  if (data == nullptr) return test::skip("the real MNIST is needed; MUSTER_DATA_DIR says where it is");
  const Outcome synchronous = train(chosen(), TrainingMode::SynchronousGradients, data);
  const Outcome shared = train(chosen(), TrainingMode::SharedGradients, data);
  MESSAGE("accuracy after 3 epochs: synchronous " << synchronous.accuracy << ", shared " << shared.accuracy
                                                  << "; bytes of dense gradients: " << synchronous.denseShare
                                                  << " and " << shared.denseShare);
  CHECK(synchronous.denseShare == doctest::Approx(1));
  CHECK(shared.denseShare <= 0.1);
  CHECK(shared.accuracy >= synchronous.accuracy - 0.005);
}

TEST_CASE("bf16 on the CPU reaches the accuracy of float32 within half a point") {
  if (test::kSanitized) return test::skip("an epoch of MNIST takes too long under a sanitizer");
  if (const auto why = whyNoMathMode(Device::cpu(), MathMode::BFloat16); !why.empty())
    return test::skip("bf16: " + why);
  const char* const data = test::realDataDir();
  if (data == nullptr) return test::skip("the real MNIST is needed; MUSTER_DATA_DIR says where it is");
  const double exact = train(chosen(), TrainingMode::Averaging, data, MathMode::Float32, 1).accuracy;
  const double coarse = train(chosen(), TrainingMode::Averaging, data, MathMode::BFloat16, 1).accuracy;
  MESSAGE("accuracy after an epoch: float32 " << exact << ", bf16 " << coarse);
  CHECK(coarse >= exact - 0.005);
}
