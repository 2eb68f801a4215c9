// Trains ResNet-18 with several workers at once and tests it after each epoch: the multi-GPU chapter of
// "Dive into Deep Learning". `resnet18_fashion --help` lists the options.

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "examples/muster/run_of.h"
#include "examples/resnet18_fashion/options.h"
#include "examples/support/check_saved.h"
#include "examples/support/data_sets.h"
#include "examples/support/divergence.h"
#include "examples/support/keep_network.h"
#include "examples/support/number_text.h"
#include "examples/support/paths.h"
#include "examples/support/program.h"
#include "examples/support/report.h"
#include "examples/support/text_table.h"
#include "examples/support/training_interrupt.h"
#include "examples/support/training_json.h"
#include "muster/core/base/interrupt.h"
#include "muster/core/base/plural.h"
#include "muster/core/data/image_transform.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/io/model_file.h"
#include "muster/core/listeners/collect_scores_listener.h"
#include "muster/core/listeners/performance_listener.h"
#include "muster/core/listeners/progress_listener.h"
#include "muster/core/nn/models/resnet18.h"
#include "muster/parallel/parallel_wrapper.h"

using namespace muster;

namespace {

using example::EpochResult;
using Options = example::Resnet18Options;

/// A table with a row per epoch.
std::string curveTable(const std::vector<EpochResult>& epochs) {
  example::Cells rows{{"epoch", "training loss", "test accuracy, %", "seconds"}};
  for (const auto& epoch : epochs)
    rows.push_back({fmt::format("{}", epoch.epoch), fmt::format("{:.4f}", epoch.loss),
                    fmt::format("{:.2f}", *epoch.testAccuracy * 100),
                    example::secondsDigits(*epoch.trainingSeconds)});
  return example::textTable(rows);
}

/// Writes the file of `--json`.
void writeJson(const Options& options, const example::DataSets& data, const ParallelWrapper& wrapper,
               const ComputationGraph& network, const std::vector<EpochResult>& epochs, bool interrupted) {
  const auto putOptions = [&](JsonWriter& json) {
    json.put("workers", std::int64_t{options.workers});
    json.put("batch", options.batch);
    json.put("learningRate", options.learningRate);
    json.put("seed", options.seed);
    json.put("width", options.width);
    json.put("augment", options.augment);
    if (options.augment || !options.load.empty()) return;  // run files have neither
    auto run = program::runOf(options, options.data, data, wrapper);
    run.data.batch = options.batch;
    run.data.seed = options.seed;
    run.network = network.configuration().toJson();
    run.training.epochs = options.epochs;
    if (!options.save.empty()) run.training.model = options.save.string();
    json.group("configuration", [&](JsonWriter& inside) { run.write(inside); });
  };
  const auto plan = wrapper.plan();
  example::TrainingJson{.data = data.title,
                        .dataFrom = data.origin,
                        .options = putOptions,
                        .plan = plan,
                        .interrupted = interrupted,
                        .epochs = epochs}
      .write(options.json);
}

/// Checks all that it can before the data are read, which may take long.
void checkBeforehand(const Options& options) {
  example::Paths paths;
  options.data.addTo(paths);
  paths.reads("--load", options.load, /*replacedBy=*/"--save");
  paths.writesInto("--report", options.report, example::kReportFiles);
  paths.writes("--json", options.json);
  paths.writes("--save", options.save);
  options.watch.addTo(paths);
  paths.check();
  if (!options.load.empty()) readModelNotes(options.load);
  example::requireUsable(options.device);
}

/// Loads a network with its state and sets the training options.
std::unique_ptr<ComputationGraph> loadNetwork(const Options& options, const Shape& image) {
  const auto saved = ComputationGraph::load(options.load);
  auto configuration = saved->configuration();
  if (configuration.inputs.size() != 1)
    throw FileError(options.load,
                    fmt::format("is of a network with {} inputs, not of one", configuration.inputs.size()));
  if (configuration.inputs[0].shape != image)
    throw FileError(options.load, fmt::format("is of a network for {}, but the images are {}",
                                              configuration.inputs[0].shape.toString(), image.toString()));
  configuration.seed = static_cast<std::uint64_t>(options.seed);
  configuration.updater = Sgd{.learningRate = options.learningRate};
  auto network = std::make_unique<ComputationGraph>(std::move(configuration));
  network->init();
  network->copyStateFrom(*saved, /*withUpdaterState=*/false);  // plain SGD has none
  return network;
}

std::unique_ptr<ComputationGraph> makeNetwork(const Options& options, const example::DataSets& data) {
  const Shape& image = data.train->set()->imageShape();
  if (!options.load.empty()) return loadNetwork(options, image);
  auto configuration =
      resnet18(data.train->set()->classes(), image[0],
               {.imageSize = {image[1], image[2]}, .width = options.width, .init = options.init});
  configuration.seed = static_cast<std::uint64_t>(options.seed);
  configuration.updater = Sgd{.learningRate = options.learningRate};
  auto network = std::make_unique<ComputationGraph>(std::move(configuration));
  network->init();
  return network;
}

/// The training images, augmented on request.
class TrainingImages {
 public:
  TrainingImages(DataSetIterator& images, const Options& options) : images_(images) {
    if (options.augment)
      transformed_.emplace(images, std::vector<ImageTransform>{RandomCrop{.padding = 4}, RandomFlip{}},
                           static_cast<std::uint64_t>(options.seed));
  }
  DataSetIterator& iterator() { return transformed_ ? *transformed_ : images_; }

 private:
  DataSetIterator& images_;
  std::optional<TransformingIterator> transformed_;
};

/// For example `2 workers, batch 256 each, learning rate 0.2`.
std::string describe(const Options& options) {
  return fmt::format("{}, batch {}{}, learning rate {:.4g}", plural(options.workers, "worker"), options.batch,
                     options.workers == 1 ? "" : " each", options.learningRate);
}

/// The listeners. The PerformanceListener comes first, so that it does not measure the tests.
struct Told {
  std::shared_ptr<PerformanceListener> performance =
      std::make_shared<PerformanceListener>(PerformanceOptions{.tableAtEnd = false});
  std::shared_ptr<CollectScoresListener> scores = std::make_shared<CollectScoresListener>();
  std::shared_ptr<EvaluationListener> tests;
};

/// Trains epoch by epoch. @param epochs  receives the results of each finished epoch.
void train(ParallelWrapper& wrapper, Network& network, DataSetIterator& images, const Told& told,
           const Options& options, const std::stop_token& stop, std::vector<EpochResult>& epochs) {
  for (std::int64_t i = 0; i < options.epochs && !stop.stop_requested(); ++i) {
    const auto before = network.epoch();
    wrapper.fit(images, 1, stop);
    if (network.epoch() == before) break;  // interrupted within the epoch
    epochs.push_back({.epoch = network.epoch(),
                      .loss = told.scores->epochs().back().score,
                      .testAccuracy = told.tests->results().back().evaluation.accuracy(),
                      .trainingSeconds = told.performance->report().seconds});
    fmt::print("epoch {}: loss {}, test accuracy {:.4f}, {:.1f} s\n", epochs.back().epoch,
               scoreDigits(epochs.back().loss), *epochs.back().testAccuracy, *epochs.back().trainingSeconds);
  }
}

/// Saves the network, loads it again, and compares the two.
void save(Network& network, const example::DataSets& data, const Options& options) {
  example::writeHereOrElsewhere(options.save, [&](const std::filesystem::path& path) { network.save(path); });
  fmt::print("saved: {}; {}\n", options.save.string(),
             example::checkSaved(network, options.save, data, options.batch));
}

int run(const Options& options) {
  checkBeforehand(options);
  example::endOnInterrupt(example::kInterruptedBefore);
  auto data = example::loadData(options.data, options.batch, options.seed);
  if (!data.notice.empty()) fmt::print("{}\n", data.notice);
  const auto placed = example::placeImages(data, options.placement, options.device.devices, options.workers,
                                           options.augment ? "--augment moves and mirrors them there" : "");
  for (const auto& notice : {options.device.notice, placed})
    if (!notice.empty()) fmt::print("{}\n", notice);
  TrainingImages images(*data.train, options);
  const auto network = makeNetwork(options, data);
  example::requireDiskRoom(options.save, example::savedBytes(*network));

  Told told;
  told.tests = std::make_shared<EvaluationListener>(
      *data.test, EvaluationOptions{.sink = [](std::string_view) {}});  // the epoch's line shows the result
  Listeners listeners = {told.performance, told.scores};
  options.watch.addProgress(listeners, network->epoch() + options.epochs);
  listeners.push_back(told.tests);
  const example::Watching watching(options.watch, told.tests);
  watching.addTo(listeners);
  auto wrapper = options.builder(*network).listeners(listeners).build();
  watching.describe(wrapper.plan(), network->summary());
  watching.options(options.hyperParameters(), {"accuracy"});
  fmt::print("data: {}, {} to train with{} and {} to test with, from {}\n", data.title,
             plural(*data.train->examples(), "image"),
             options.augment ? ", moved and mirrored at random," : "", *data.test->examples(), data.origin);
  fmt::print("plan: {}; {}; {}\n", wrapper.plan(), describe(options),
             plural(network->parameterCount(), "parameter"));
  if (!options.load.empty())
    fmt::print("loaded: {}, with {} finished, test accuracy {:.4f}\n", options.load.string(),
               plural(network->epoch(), "epoch"), wrapper.evaluate(*data.test).accuracy());

  example::TrainingInterrupt interrupt(/*saves=*/!options.save.empty());
  bool saved = false;
  const auto before = network->iteration();
  const example::DivergenceCheck diverged(*network, *data.train);
  std::vector<EpochResult> epochs;
  example::trainAndSave(
      [&] {
        watching.during(
            [&] { train(wrapper, *network, images.iterator(), told, options, interrupt.token(), epochs); });
      },
      [&](bool failed) {
        if (options.save.empty()) return;
        if ((failed || interrupt.requested()) && network->iteration() == before) {
          fmt::print("ended before the first step: nothing was saved\n");
          return;
        }
        diverged.requireNone(*network);
        save(*network, data, options);
        saved = true;
      },
      fmt::format("--learning-rate {}", options.learningRate),
      {options.save, [&](const std::filesystem::path& path) {
         if (network->iteration() != before) network->save(path);
         return network->iteration() != before;
       }});
  interrupt.end(saved);
  const bool interrupted = interrupt.requested();
  if (interrupted)
    fmt::print("interrupted, with {} of {} finished\n", epochs.size(), plural(options.epochs, "epoch"));
  if (!epochs.empty()) {
    watching.result("accuracy", *epochs.back().testAccuracy);
    fmt::print("\n{}", curveTable(epochs));
  }
  if (!options.report.empty()) {
    const auto remark =
        interrupted ? fmt::format("interrupted after {}", plural(epochs.size(), "epoch")) : "";
    fmt::print("report: {}\n", example::writeReport(options.report, wrapper.evaluate(*data.test), *network,
                                                    data, remark, watching));
  }
  if (!options.json.empty()) {
    writeJson(options, data, wrapper, *network, epochs, interrupted);
    fmt::print("json: {}\n", options.json.string());
  }
  return interrupted ? kInterruptedExit : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return example::runProgram("resnet18_fashion", [&] {
    const auto options = example::readResnet18Options(argc, argv);
    return options ? example::runOn(options->device, [&] { return run(*options); }) : 0;
  });
}
