// Measures what comes before training: from MNIST's files to the end of the first step in a fresh process,
// and how fast one thread reads and augments images, beside ResNet-18 training on such images. Each
// measurement is a separate process; they take turns. `loading --help` lists the options.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "muster/core/base/random.h"
#include "muster/core/data/image_transform.h"
#include "muster/core/device/affinity.h"
#include "muster/core/listeners/progress_listener.h"
#include "muster/core/nn/models/convnet.h"
#include "muster/core/nn/models/resnet18.h"
#include "muster/datasets/cache.h"
#include "muster/datasets/mnist.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/bench/arms.h"
#include "tests/bench/command_line.h"
#include "tests/bench/timing.h"

using namespace muster;
using namespace muster::bench;

namespace {

constexpr std::uint64_t kSeed = 1;
constexpr std::int64_t kMnistBatch = 128;  // images
constexpr int kTrainingWorkers = 2;

struct Options {
  double seconds = 2, began = 0;
  int rounds = 5, workers = 1;
  std::int64_t batch = 64;
  std::string part = "all", jsonFile = {}, arm = {};
};

/// By the clock that `date` prints.
double secondsOfClock() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

MnistDataSetIterator mnist() {
  return {kMnistBatch, /*train=*/true, kSeed, {.allowDownload = false}};
}

/// Keeps the time of the first merge and stops the training.
class FirstMerge final : public Listener {
 public:
  void onMerge(const MergeEvent&) override {
    if (stop_.stop_requested()) return;
    at_ = secondsOfClock();
    processorSeconds_ = bench::processorSeconds();
    stop_.request_stop();
  }
  std::stop_token stop() const { return stop_.get_token(); }
  double at() const { return at_; }
  double processorSeconds() const { return processorSeconds_; }

 private:
  std::stop_source stop_;
  double at_ = 0, processorSeconds_ = 0;
};

/// The arm first-step. @param began  when the process was started
void measureFirstStep(int workers, double began) {
  auto data = mnist();
  const double read = secondsOfClock();
  MultiLayerNetwork model(convnet());
  model.init();
  const auto first = std::make_shared<FirstMerge>();
  auto wrapper =
      ParallelWrapper::Builder(model).workers(workers).averagingFrequency(1).listeners({first}).build();
  wrapper.fit(data, 1, first->stop());
  if (!std::isfinite(model.score())) throw std::runtime_error("the score is not finite");
  fmt::print("{{\"seconds\": {:.4f}, \"processorSeconds\": {:.4f}, \"readSeconds\": {:.4f}}}\n",
             first->at() - began, first->processorSeconds(), read - began);
}

/// Images of CIFAR-10's size, without meaning.
std::shared_ptr<const ImageSet> colouredImages(std::int64_t images) {
  const Shape shape{3, 32, 32};
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(images * shape.elements()));
  std::vector<std::uint8_t> labels(static_cast<std::size_t>(images));
  const RandomStream random(kSeed, "pixels");
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<std::uint8_t>(256 * random.uniform(i));
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::uint8_t>(i % 10);
  return std::make_shared<ImageSet>(std::move(pixels), shape, std::move(labels), 10, "random");
}

/// The arms read and augment: one thread takes batches, epoch after epoch.
/// @param augment  whether images are moved and mirrored, as by `resnet18_fashion --augment`
void measureReader(bool augment, const Options& o) {
  const ThreadPin pin({availableCores().front()}, 1);
  ImageSetIterator images(colouredImages(64 * o.batch), o.batch, kSeed);
  TransformingIterator augmented(images, {RandomCrop{.padding = 4}, RandomFlip{}}, kSeed);
  DataSetIterator& data = augment ? static_cast<DataSetIterator&>(augmented) : images;
  Batch batch;
  std::int64_t epoch = 0;
  data.reset(epoch);
  const double calls = callsPerSecond(o.seconds, [&](std::int64_t) {
    while (!data.next(batch)) data.reset(++epoch);
  });
  fmt::print("{{\"samplesPerSecond\": {:.1f}}}\n", calls * static_cast<double>(o.batch));
}

/// The arm train: ResNet-18.
void measureTraining(const Options& o) {
  constexpr std::int64_t kBatches = 2;  // of each worker in an epoch
  auto configuration = resnet18(10, 3, {.imageSize = {32, 32}});
  configuration.updater = Sgd{.learningRate = 0.01};
  ComputationGraph network(std::move(configuration));
  network.init();
  const std::int64_t examples = kTrainingWorkers * kBatches * o.batch;
  ImageSetIterator data(colouredImages(examples), o.batch, kSeed);
  auto wrapper = ParallelWrapper::Builder(network).workers(kTrainingWorkers).averagingFrequency(3).build();
  const double epochs = callsPerSecond(o.seconds, [&](std::int64_t) { wrapper.fit(data); });
  fmt::print("{{\"samplesPerSecond\": {:.1f}}}\n", epochs * static_cast<double>(examples));
}

Arm armOf(const std::string& name, const std::string& flags, const Options& o) {
  const auto self = std::filesystem::canonical("/proc/self/exe").string();
  return {.name = name,
          .command = fmt::format("'{}' --arm {} --batch {} --seconds {} --began $(date +%s.%N)", self, flags,
                                 o.batch, o.seconds)};
}

std::vector<Arm> measured(std::vector<Arm> arms, int rounds) {
  measureInTurns(arms, rounds);
  requireAll(arms);
  return arms;
}

/// @return no arms if MNIST is not on this machine
std::vector<Arm> compareFirstSteps(const Options& o) {
  std::string files;
  try {
    files = mnist().set()->origin().parent_path().string();
  } catch (const DownloadError& error) {
    fmt::print("The first step is not measured, because MNIST is not on this machine: {}\n\n", error.what());
    return {};
  }
  auto arms = measured(
      {armOf("1 worker", "first-step --workers 1", o), armOf("2 workers", "first-step --workers 2", o)},
      o.rounds);
  fmt::print(
      "From MNIST's files in {} to the end of the first step of the convnet, batch {}, in a fresh process; "
      "medians of {} rounds\n\n",
      files, kMnistBatch, o.rounds);
  fmt::print("{:<36} {:>10} {:>14} {:>16}\n", "", "seconds", "processor, s", "files read, s");
  for (const auto& arm : arms)
    fmt::print("{:<36} {:>10.3f} {:>14.3f} {:>16.3f}\n", arm.name, arm.median("seconds").value(),
               arm.median("processorSeconds").value(), arm.median("readSeconds").value());
  fmt::print("\n");
  std::fflush(stdout);
  return arms;
}

std::vector<Arm> compareReaders(const Options& o) {
  const auto training = fmt::format("ResNet-18, {} workers", kTrainingWorkers);
  auto arms = measured({armOf(training, "train", o), armOf("1 reader", "read", o),
                        armOf("1 reader, random crop and mirror", "augment", o)},
                       o.rounds);
  fmt::print("Images 3x32x32 in batches of {}; medians of {} rounds of {:g} s\n\n", o.batch, o.rounds,
             o.seconds);
  fmt::print("{:<36} {:>10} {:>10} {:>14}\n", "", "samples/s", "us each", "vs ResNet-18");
  for (const auto& arm : arms) {
    const double rate = arm.median("samplesPerSecond").value();
    fmt::print("{:<36} {:>10.0f} {:>10.2f} {:>14}\n", arm.name, rate, 1e6 / rate,
               arm.name == training ? "-" : fmt::format("{:.1f} x", ratio(arm, arms.front()).value()));
  }
  return arms;
}

void compareAll(const Options& o) {
  std::map<std::string, std::vector<Arm>> tables;
  if (o.part != "augmentation") tables["first step"] = compareFirstSteps(o);
  if (o.part != "first-step") tables["augmentation"] = compareReaders(o);
  if (!o.jsonFile.empty()) writeJson(tables, o.jsonFile);
}

void measureArm(const Options& o) {
  if (o.arm == "first-step") return measureFirstStep(o.workers, o.began);
  if (o.arm == "read") return measureReader(/*augment=*/false, o);
  if (o.arm == "augment") return measureReader(/*augment=*/true, o);
  if (o.arm == "train") return measureTraining(o);
  throw std::invalid_argument("arm: expected first-step, read, augment or train, got " + o.arm);
}

}  // namespace

int main(int argc, char** argv) try {
  muster::showProgress(false);
  namespace po = boost::program_options;
  Options o;
  o.began = secondsOfClock();
  po::options_description options("loading: the time to the first step, and the speed of augmentation");
  auto add = options.add_options();
  add("part", po::value(&o.part), "first-step, augmentation or all [all]");
  add("rounds", po::value(&o.rounds), "measurements of each arm, in turns [5]");
  add("seconds", po::value(&o.seconds), "each measurement of a speed takes [2]");
  add("batch", po::value(&o.batch), "coloured images per step [64]");
  add("json", po::value(&o.jsonFile), "write all measurements to this file");
  add("arm", po::value(&o.arm), "measure first-step, read, augment or train here, and print JSON");
  add("workers", po::value(&o.workers), "of the arm first-step [1]");
  add("began", po::value(&o.began), "when the arm's process was started, as `date +%s.%N` [now]");
  po::variables_map given;
  if (!readCommandLine(argc, argv, options, given)) return 0;
  if (o.rounds < 1 || o.seconds <= 0 || o.batch < 1 || o.workers < 1)
    throw std::invalid_argument("rounds, seconds, batch and workers must be positive");
  if (o.part != "first-step" && o.part != "augmentation" && o.part != "all")
    throw std::invalid_argument("part: expected first-step, augmentation or all, got " + o.part);
  if (o.arm.empty())
    compareAll(o);
  else
    measureArm(o);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "loading: {}\n", error.what());
  return 1;
}
