// Wrappers with workers on several devices: simulated ones on the CPU, and a GPU if there is one.

#include "tests/support/devices.h"
#include "muster/parallel/exchange/transport.h"
#include "muster/parallel/training/internals.h"
#include "tests/parallel/small_network.h"
#include "tests/support/on_merge.h"
#include "tests/support/thrown.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr std::int64_t kWidth = 67;

struct Setting {
  int workers = 2;
  TrainingMode mode = TrainingMode::Averaging;
  bool averageUpdaters = true;
  int devices = 0;  // pretended devices
};

/// A fit of two epochs and one of one, the last round of each partial. @return the bits of the model; its
/// numbers without counters; the divergence of each merge.
std::tuple<std::vector<std::byte>, std::vector<float>, std::vector<double>> train(const Setting& s) {
  ToyModel model({.size = kWidth, .training = halfNesterovs(), .statistics = true});
  std::vector<double> divergence;
  const auto recorder = onMerge([&](const MergeEvent& event) { divergence.push_back(event.divergence); });
  auto builder = toyWrapper(model, s.workers, s.mode == TrainingMode::Averaging ? 2 : 1);
  builder.internals({.pretendedDevices = s.devices});
  builder.trainingMode(s.mode).averageUpdaters(s.averageUpdaters).listeners({recorder});
  if (s.mode == TrainingMode::Averaging) builder.measureDivergence(true);
  auto wrapper = builder.build();
  ToyIterator data(randomBatches(7, 4 * s.workers + 3, 5, kWidth, /*ragged=*/true), kWidth);
  for (const int epochs : {2, 1}) wrapper.fit(data, epochs);
  auto numbers = model.parameters();
  for (const auto& more : {model.statistics(), model.updaterState("velocity")})
    numbers.insert(numbers.end(), more.begin(), more.end());
  return {model.allBits(), numbers, divergence};
}

}  // namespace

TEST_CASE("every mode trains on several devices to the bits of one device") {
  for (const auto mode :
       {TrainingMode::Averaging, TrainingMode::SynchronousGradients, TrainingMode::SharedGradients})
    for (const int workers : {1, 2, 3, 5})
      for (const bool averageUpdaters : {true, false}) {
        if (mode == TrainingMode::SynchronousGradients && !averageUpdaters) continue;
        INFO("mode ", static_cast<int>(mode), ", workers ", workers, ", averageUpdaters ", averageUpdaters);
        const auto [bits, numbers, divergence] = train({workers, mode, averageUpdaters, 0});
        for (int devices = 1; devices <= std::min(workers, 3); ++devices) {
          CAPTURE(devices);
          const auto [sameBits, got, spread] = train({workers, mode, averageUpdaters, devices});
          // Sums on one device equal those of the CPU; so do sums over devices with one replica each, except
          // residuals, which are rounded during transfer.
          if (devices == 1 || (workers <= devices && mode != TrainingMode::SharedGradients))
            CHECK(sameBits == bits);
          for (std::size_t i = 0; i < numbers.size(); ++i)
            CHECK(std::abs(got[i] - numbers[i]) <= 2e-5 * (1 + std::abs(numbers[i])));
          REQUIRE(spread.size() == divergence.size());
          for (std::size_t m = 0; m < spread.size(); ++m)
            CHECK(spread[m] == doctest::Approx(divergence[m]).epsilon(1e-4));
          CHECK(sameBits == std::get<0>(train({workers, mode, averageUpdaters, devices})));
        }
      }
}

TEST_CASE("the plan says how replicas on several devices are merged, and by which transport") {
  const auto planBy = [](std::string_view kind) {
    return fmt::format(
        "3 workers on cpu (1 thread each, not pinned), averaging every iteration, merged over 2 devices by "
        "{}: 3 batches per round",
        kind);
  };
  for (const bool works : {true, false}) {
    ToyModel model;
    detail::Internals internals{.pretendedDevices = 2};
    if (!works) internals.failingTransport = TransportKind::Peers;
    auto wrapper = toyWrapper(model, 3).internals(internals).build();
    CHECK(wrapper.plan() == planBy("peer copies"));
    auto data = ToyIterator::ofValues({4, 4, 4});
    wrapper.fit(data);
    CHECK(wrapper.plan() == planBy(works ? "peer copies" : "the host"));
    wrapper.fit(data);
    CHECK(wrapper.plan() == planBy(works ? "peer copies" : "the host"));
  }
}

namespace {

struct OfNetwork {
  std::vector<float> parameters;
  double accuracy = 0;
};

OfNetwork trainNetwork(const std::vector<Device>& devices, int workers, TrainingMode mode,
                       MathMode math = MathMode::Float32) {
  auto network = smallNetwork();
  auto data = points(20);
  auto builder = ParallelWrapper::Builder(*network);
  builder.workers(workers).devices(devices).trainingMode(mode).mathMode(math).pinThreads(false);
  if (mode == TrainingMode::Averaging) builder.averagingFrequency(2).measureDivergence(true);
  auto wrapper = builder.build();
  wrapper.fit(data, 3);
  const auto values = network->block(BlockKind::Parameters).values.span<float>();
  return {{values.begin(), values.end()}, wrapper.evaluate(data).accuracy()};
}

}  // namespace

TEST_CASE_ON("workers on one GPU train as those on the CPU, in every mode, with the same bits in each run",
             Where, OnGpu) {
  for (const auto mode :
       {TrainingMode::Averaging, TrainingMode::SynchronousGradients, TrainingMode::SharedGradients})
    for (const int workers : {1, 2, 4, 9}) {
      INFO("mode ", static_cast<int>(mode), ", workers ", workers);
      const auto cpu = trainNetwork({Device::cpu()}, workers, mode);
      const auto gpu = trainNetwork({Device::cuda(0)}, workers, mode);
      double difference = 0, norm = 0;
      for (std::size_t i = 0; i < cpu.parameters.size(); ++i) {
        difference += std::pow(gpu.parameters[i] - cpu.parameters[i], 2);
        norm += std::pow(cpu.parameters[i], 2);
      }
      // Roundings differ, and thresholds amplify them: they decide what is sent.
      CHECK(std::sqrt(difference / norm) < (mode == TrainingMode::SharedGradients ? 0.1 : 1e-3));
      CHECK(std::abs(gpu.accuracy - cpu.accuracy) < 0.05);
      CHECK(gpu.parameters == trainNetwork({Device::cuda(0)}, workers, mode).parameters);
    }
}

TEST_CASE_ON("one worker on a GPU gives the bits of model.fit() there, at any frequency", Where, OnGpu) {
  const auto parametersOf = [](MultiLayerNetwork& network) {
    const Tensor values = copyTo(network.block(BlockKind::Parameters).values, Device::cpu());
    return std::vector<float>(values.span<float>().begin(), values.span<float>().end());
  };
  Context gpu(Device::cuda(0));
  const auto alone = smallNetwork(&gpu);
  auto data = points(20);
  alone->fit(data, 4);
  // No listener observes the merges, so the worker continues without waiting.
  for (const std::int64_t frequency : {1, 2, 3, 100}) {
    CAPTURE(frequency);
    const auto network = smallNetwork(&gpu);
    auto builder = ParallelWrapper::Builder(*network);
    builder.workers(1).devices({Device::cuda(0)}).averagingFrequency(frequency).pinThreads(false);
    builder.build().fit(data, 4);
    CHECK(parametersOf(*network) == parametersOf(*alone));
    CHECK(network->iteration() == alone->iteration());
  }
}

TEST_CASE_ON("workers on the CPU train and evaluate a model on a GPU", Where, OnGpu) {
  const auto train = [](MultiLayerNetwork& network) {
    auto data = points(20);
    auto wrapper =
        ParallelWrapper::Builder(network).workers(2).devices({Device::cpu()}).averagingFrequency(2).build();
    wrapper.fit(data, 3);
    CHECK(wrapper.evaluate(data).accuracy() > 0.8);
    const Tensor values = copyTo(network.block(BlockKind::Parameters).values, Device::cpu());
    return std::vector<float>(values.span<float>().begin(), values.span<float>().end());
  };
  Context gpu(Device::cuda(0));
  CHECK(train(*smallNetwork(&gpu)) == train(*smallNetwork()));
}

TEST_CASE("workers on two GPUs train as workers on one do") {
  if (availableDevices().size() < 3) return skip("this machine has not two GPUs");
  for (const auto mode : {TrainingMode::Averaging, TrainingMode::SynchronousGradients}) {
    const auto one = trainNetwork({Device::cuda(0)}, 2, mode);
    const auto two = trainNetwork({Device::cuda(0), Device::cuda(1)}, 2, mode);
    CHECK(one.parameters == two.parameters);
  }
}

TEST_CASE_ON("workers on a GPU learn in every math mode", Mode, OnGpuInBFloat16) {
  const auto cpu = trainNetwork({Device::cpu()}, 2, TrainingMode::Averaging);
  for (const auto math : {MathMode::TensorFloat32, MathMode::BFloat16}) {
    const auto gpu = trainNetwork({Device::cuda(0)}, 2, TrainingMode::Averaging, math);
    CHECK(std::abs(gpu.accuracy - cpu.accuracy) < 0.05);
    CHECK(gpu.parameters != cpu.parameters);
  }
}
