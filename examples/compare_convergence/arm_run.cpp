#include "examples/compare_convergence/arm_run.h"

#include <algorithm>

#include "examples/compare_convergence/names.h"
#include "muster/core/base/error.h"
#include "muster/core/device/device.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/models/convnet.h"
#include "muster/core/nn/models/mlp.h"
#include "muster/core/nn/models/resnet18.h"
#include "muster/core/nn/recompute_statistics.h"
#include "muster/datasets/image_set_iterator.h"
#include "muster/parallel/parallel_wrapper.h"

namespace convergence {
namespace {

using namespace muster;

constexpr std::int64_t kTestBatch = 250;
constexpr std::int64_t kStatisticsBatch = 128;
constexpr std::int64_t kWarmUpSteps = 5;

Schedule learningRateOf(const Arm& arm, const Setting& setting) {
  if (!setting.cosine) return arm.learningRate;
  const auto batches = (setting.trainingExamples + arm.batch - 1) / arm.batch;
  return CosineSchedule{.initial = arm.learningRate,
                        .iterations = (batches + arm.workers - 1) / arm.workers * setting.epochs};
}

Updater updaterOf(const Arm& arm, const Setting& setting) {
  if (arm.updater == Nesterovs::kType)
    return Nesterovs{.learningRate = learningRateOf(arm, setting), .momentum = setting.momentum};
  if (arm.updater == Sgd::kType) return Sgd{.learningRate = learningRateOf(arm, setting)};
  return Updater::named(arm.updater, arm.learningRate);
}

TrainingMode trainingModeOf(Mode mode) {
  if (mode == Mode::Synchronous) return TrainingMode::SynchronousGradients;
  if (mode == Mode::Shared) return TrainingMode::SharedGradients;
  return TrainingMode::Averaging;
}

/// A single worker needs no merges, but tests run only at merges. Ten merges per test keep tests on time; a
/// merge in every iteration would waste time on copies.
std::int64_t frequencyOf(const Arm& arm, const Setting& setting) {
  if (arm.mode != Mode::Single) return arm.frequency;
  return std::max<std::int64_t>(1, setting.testEvery / arm.batch / 10);
}

ParallelWrapper wrapperOf(const Arm& arm, const Setting& setting, Model& network, Listeners listeners) {
  auto builder = ParallelWrapper::Builder(network);
  builder.workers(static_cast<int>(arm.workers))
      .pinThreads(setting.pinThreads)
      .listeners(std::move(listeners));
  if (arm.mode == Mode::Strategy) return builder.strategy(strategyOf(arm)).build();
  return builder.trainingMode(trainingModeOf(arm.mode))
      .averagingFrequency(frequencyOf(arm, setting))
      .synchronousUntil(arm.synchronousUntil)
      .measureDivergence(measuresDistance(arm))
      .build();
}

/// Gives a run its own directory, named after the arm and the seed.
example::WatchOptions watchOf(const Arm& arm, std::int64_t seed, const Setting& setting) {
  auto watch = setting.watch;
  if (!watch.tensorBoard.empty())
    watch.tensorBoard /= std::filesystem::path(armFileName(arm)) / fmt::format("seed-{}", seed);
  return watch;
}

std::vector<HyperParameter> hyperParametersOf(const Arm& arm, std::int64_t seed) {
  return {{"mode", arm.mode == Mode::Strategy ? arm.strategy : std::string(nameOf(arm.mode))},
          {"workers", static_cast<double>(arm.workers)},
          {"frequency", static_cast<double>(arm.frequency)},
          {"batch", static_cast<double>(arm.batch)},
          {"updater", arm.updater},
          {"learning rate", arm.learningRate},
          {"seed", static_cast<double>(seed)}};
}

/// @throws NonFiniteScore for a model whose predictions are not finite.
TestResult test(Model& model, DataSetIterator& images) try {
  const Evaluation result = evaluate(model, images);
  return {.accuracy = result.accuracy(), .loss = result.loss()};
} catch (const InvalidArgument& error) {  // shapes fit: a prediction is not finite
  throw NonFiniteScore(fmt::format("the merged model on the test images: {}", error.what()));
}

bool hasStatistics(Model& model) {
  return std::ranges::any_of(model.blocks(), [](const StateBlock& block) {
    return block.kind == BlockKind::Statistics && block.values.elements() > 0;
  });
}

bool isNonFinite(const std::exception_ptr& cause) {
  try {
    std::rethrow_exception(cause);
  } catch (const NonFiniteScore&) {
    return true;
  } catch (...) {
    return false;
  }
}

template <typename N, typename Configuration>
std::unique_ptr<Network> initialised(Configuration configuration, const Arm& arm, std::int64_t seed,
                                     const Setting& setting) {
  configuration.seed = static_cast<std::uint64_t>(seed);
  configuration.updater = updaterOf(arm, setting);
  configuration.l2 = setting.l2;
  auto network = std::make_unique<N>(std::move(configuration));
  network->init();
  return network;
}

MultiLayerConfiguration flatMlp(std::int64_t classes, const Shape& image) {
  auto configuration = mlp({64}, classes);
  configuration.inputShape = image;
  // Centre the pixels, which are between 0 and 1: training converges better.
  configuration.layers.insert(configuration.layers.begin(), {Flatten{}, LayerNorm{}});
  return configuration;
}

}  // namespace

std::unique_ptr<Network> networkOf(const Arm& arm, std::int64_t seed, const Setting& setting) {
  const Shape& image = setting.trainingImages->imageShape();
  const auto classes = setting.trainingImages->classes();
  if (setting.model == "convnet")
    return initialised<MultiLayerNetwork>(convnet(classes, image), arm, seed, setting);
  if (setting.model == "mlp")
    return initialised<MultiLayerNetwork>(flatMlp(classes, image), arm, seed, setting);
  auto configuration =
      resnet18(classes, image[0], {.imageSize = {image[1], image[2]}, .width = setting.width});
  return initialised<ComputationGraph>(std::move(configuration), arm, seed, setting);
}

ArmRun runArm(const Arm& arm, std::int64_t seed, const Setting& setting,
              const std::function<void(std::int64_t samples)>& progress, const std::stop_token& stop) {
  ImageSetIterator testImages(setting.testImages, kTestBatch, std::nullopt, setting.testExamples);
  const auto network = networkOf(arm, seed, setting);
  const auto recorder = std::make_shared<Recorder>(
      RecorderOptions{.testEvery = setting.testEvery,
                      .samples = setting.samples(),
                      .apart = measuresDistance(arm),
                      .test = [&](Model& model) { return test(model, testImages); },
                      .progress = progress});
  ImageSetIterator images(setting.trainingImages, arm.batch, static_cast<std::uint64_t>(seed),
                          setting.trainingExamples);
  ArmRun run{.record = {.arm = arm, .seed = seed, .points = {}, .cores = availableParallelism()},
             .merges = {}};
  try {
    const example::Watching watching(watchOf(arm, seed, setting));
    Listeners listeners = {recorder};
    watching.addTo(listeners);
    auto wrapper = wrapperOf(arm, setting, *network, listeners);
    watching.describe(wrapper.plan(), network->summary());
    watching.options(hyperParametersOf(arm, seed), {"accuracy"}, armFileName(arm));
    watching.during([&] { wrapper.fit(images, setting.epochs, stop); });
    if (!recorder->points().empty()) watching.result("accuracy", recorder->points().back().testAccuracy);
    run.finished = !recorder->points().empty() && recorder->points().back().samples == setting.samples();
    if (run.finished && hasStatistics(*network)) {
      ImageSetIterator all(setting.trainingImages, kStatisticsBatch, std::nullopt, setting.trainingExamples);
      recomputeStatistics(*network, all);
      run.record.recomputedAccuracy = test(*network, testImages).accuracy;
    }
  } catch (const TrainingError& error) {
    if (!isNonFinite(error.cause())) throw;
    run.record.failure = muster::describe(error.cause());
    run.finished = true;
  }
  run.record.points = recorder->points();
  run.record.computeSeconds = recorder->computeSeconds();
  run.merges = recorder->merges();
  return run;
}

void warmUp(const Arm& arm, const Setting& setting, const std::stop_token& stop) {
  Setting few = setting;
  few.trainingExamples = std::min(setting.trainingExamples, kWarmUpSteps * arm.batch * arm.workers);
  few.testExamples = std::min(setting.testExamples, kTestBatch);
  few.epochs = 1;
  few.testEvery = few.trainingExamples;
  few.watch = {};
  runArm(arm, 1, few, {}, stop);
}

}  // namespace convergence
