// Trains LeNet on several devices with a hand-written data-parallel loop, as MXNet's "multi-GPU from scratch"
// does: no model class, no ParallelWrapper. Begin with `trainBatch`; the network, written with operations
// alone, is in lenet_from_scratch/lenet.cpp.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <future>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "examples/lenet_from_scratch/lenet.h"
#include "examples/lenet_from_scratch/options.h"
#include "examples/support/data_sets.h"
#include "examples/support/device_option.h"
#include "examples/support/keep_network.h"
#include "examples/support/paths.h"
#include "examples/support/program.h"
#include "examples/support/training_interrupt.h"
#include "examples/support/training_options.h"
#include "muster/core/base/error.h"
#include "muster/core/base/interrupt.h"
#include "muster/core/base/plural.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/io/safetensors.h"
#include "muster/core/listeners/epoch_progress.h"
#include "muster/core/ops/update.h"
#include "muster/parallel/exchange/all_reduce.h"
#include "muster/parallel/split_and_load.h"

using namespace muster;

namespace {

using example::LeNet;
using Options = example::LenetOptions;

/// The state of one device: its copy of parameters and gradients, and LeNet planned for each batch size that
/// has occurred.
class Replica {
 public:
  Replica(std::span<const Tensor> initialParameters, Device device)
      : parameters(copyTo(initialParameters, device)),
        gradients(copyTo(initialParameters, device)),
        context(device) {}

  const Tensor& forward(const Batch& batch) {
    const ContextScope scope(context);
    return network(batch).forward(batch.features[0].value, parameters);
  }

  /// Computes the gradients of the loss on this piece of a batch. The whole batch has `examples`; the loss is
  /// divided by this number, so that the sum over the pieces is the gradient of the batch's mean loss.
  /// @return the summed loss of the piece.
  double computeGradients(const Batch& piece, std::int64_t examples) {
    forward(piece);
    const ContextScope scope(context);
    const double lossSum =
        network(piece).backward(piece.labels[0].value, static_cast<double>(examples), parameters, gradients);
    context.synchronize();  // on a GPU the work is only enqueued; another GPU reads the gradients next
    return lossSum;
  }

  /// Sets the gradients to zero, for a batch with fewer examples than devices.
  void clearGradients() {
    for (Tensor& gradient : gradients) setZero(gradient, context);
    context.synchronize();
  }

  /// The predictions for a batch on the CPU: logits [N, 10], on the CPU.
  Tensor predict(const Batch& batch) {
    const auto there = splitAndLoad(batch, std::array{context.device()});
    const Tensor& logits = forward(there.front());
    context.synchronize();
    return copyTo(logits, Device::cpu());
  }

  void update(double learningRate) {
    for (std::size_t p = 0; p < parameters.size(); ++p)
      updateSgd(parameters[p], gradients[p], static_cast<float>(learningRate), context);
  }

  std::vector<Tensor> parameters, gradients;  // [Parameter]
  Context context;

 private:
  LeNet& network(const Batch& batch) {
    return networks_.try_emplace(batch.examples(), batch.examples(), context).first->second;
  }

  std::map<std::int64_t, LeNet> networks_;  // [batch size]
};

using Replicas = std::deque<Replica>;  // [device]; a deque, because networks refer to their replica's context

Replicas makeReplicas(const Options& options) {
  const auto parameters = example::initialParameters(static_cast<std::uint64_t>(options.seed));
  Replicas replicas;
  for (const Device device : options.replicas()) replicas.emplace_back(parameters, device);
  return replicas;
}

/// Adds up the gradients of all devices; afterwards all hold the sum.
void sumGradients(Replicas& replicas) {
  for (std::size_t p = 0; p < example::kParameters; ++p) {
    std::vector<Tensor> gradients;  // [device]
    for (const Replica& replica : replicas) gradients.push_back(replica.gradients[p]);
    allReduce(gradients, replicas.front().context);
  }
  replicas.front().context.synchronize();
}

/// One step on all devices, equal up to rounding to a step of one device on the whole batch. All devices have
/// the same parameters before and after. @return the summed loss.
double trainBatch(const Batch& batch, Replicas& replicas, double learningRate) {
  std::vector<Device> devices;
  for (const Replica& replica : replicas) devices.push_back(replica.context.device());
  const auto pieces = splitAndLoad(batch, devices, /*evenSplit=*/false);

  std::vector<std::future<double>> losses;  // [piece]
  for (std::size_t d = 0; d < pieces.size(); ++d)
    losses.push_back(std::async(
        std::launch::async, [&, d] { return replicas[d].computeGradients(pieces[d], batch.examples()); }));
  double lossSum = 0;
  for (auto& loss : losses) lossSum += loss.get();
  for (std::size_t d = pieces.size(); d < replicas.size(); ++d) replicas[d].clearGradients();

  sumGradients(replicas);
  for (Replica& replica : replicas) replica.update(learningRate);
  return lossSum;
}

struct EpochResult {
  double loss = 0;     // mean over the examples
  double seconds = 0;  // of the training, without the validation
};

using Scores = std::vector<double>;  // [batch] of all epochs

/// Throws if the losses have grown to more than twice the first one, or that of a guess: the mean of the last
/// eight batches, since a small batch has a large loss now and then.
void requireNoDivergence(const Scores& scores) {
  if (scores.empty()) return;
  const auto count = std::min<std::size_t>(scores.size(), 8);
  const double last = std::accumulate(scores.end() - static_cast<std::ptrdiff_t>(count), scores.end(), 0.0) /
                      static_cast<double>(count);
  const double guess = std::log(static_cast<double>(LeNet::kClasses));
  if (last > 2 * std::max(scores.front(), guess))
    throw NonFiniteScore(
        fmt::format("the training diverged: its loss went from {:.3g} to {:.3g}, while that of a constant "
                    "prediction is {:.3g}",
                    scores.front(), last, guess));
}

/// @return nothing if it was interrupted.
std::optional<EpochResult> trainEpoch(std::int64_t epoch, DataSetIterator& data, Replicas& replicas,
                                      const Options& options, const example::TrainingInterrupt& interrupt,
                                      Scores& scores) {
  const std::int64_t batches = (*data.examples() + options.batch - 1) / options.batch;
  EpochProgress progress(options.epochs);
  progress.begin(epoch + 1, batches);
  data.reset(epoch);
  Batch batch;
  for (std::int64_t done = 1; data.next(batch); ++done) {
    if (interrupt.requested()) return std::nullopt;
    const double lossSum = trainBatch(batch, replicas, options.learningRate);
    if (!std::isfinite(lossSum))
      throw NonFiniteScore(fmt::format("epoch {}: the loss became {}", epoch + 1, std::abs(lossSum)));
    progress.advance(done, batch.examples(), lossSum);
    scores.push_back(lossSum / static_cast<double>(batch.examples()));
  }
  return EpochResult{progress.loss(), progress.elapsed().count()};
}

/// The accuracy, computed on the first device; all devices have the same parameters.
double validate(DataSetIterator& data, Replica& first) {
  Evaluation evaluation(LeNet::kClasses);
  data.reset(0);
  for (Batch batch; data.next(batch);) evaluation.add(first.predict(batch), batch.labels[0].value);
  return evaluation.accuracy();
}

void save(Replica& replica, const std::filesystem::path& path) {
  Safetensors file;
  replica.context.synchronize();
  for (std::size_t p = 0; p < example::kParameters; ++p)
    file.add(std::string(example::kParameterNames[p]), copyTo(replica.parameters[p], Device::cpu()));
  file.metadata["format"] = "pt";  // what PyTorch's loader asks for
  writeSafetensors(path, file);
}

std::vector<Tensor> load(const std::filesystem::path& path) {
  const Safetensors file = readSafetensors(path);
  std::vector<Tensor> parameters;  // [Parameter]
  for (const auto name : example::kParameterNames) {
    const Tensor* const parameter = file.find(std::string(name));
    if (!parameter) throw FileError(path, fmt::format("holds no {}", name));
    parameters.push_back(*parameter);
  }
  return parameters;
}

/// Saves the parameters, loads them again, and checks that a network with the loaded ones gives the same
/// outputs for the first validation batch.
void saveAndCheck(Replica& trained, DataSetIterator& images, const std::filesystem::path& path) {
  example::writeHereOrElsewhere(path, [&](const std::filesystem::path& file) { save(trained, file); });
  Replica loaded(load(path), trained.context.device());
  Batch batch;
  images.reset(0);
  images.next(batch);
  const Tensor expected = trained.predict(batch);
  const Tensor outputs = loaded.predict(batch);
  if (!std::ranges::equal(expected.span<float>(), outputs.span<float>()))
    throw FileError(path,
                    "was saved, but what was loaded from it predicts something else: another process has "
                    "replaced the file, or the disk changed it");
  fmt::print("saved: {}; loaded again, it gives the same outputs, bit for bit\n", path.string());
}

/// @return the number of finished epochs.
std::int64_t train(const example::DataSets& data, Replicas& replicas, const Options& options,
                   const example::TrainingInterrupt& interrupt, Scores& scores) {
  for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    const auto result = trainEpoch(epoch, *data.train, replicas, options, interrupt, scores);
    if (!result) return epoch;
    fmt::print("epoch {}/{}: loss {}, {:.2f} s, validation accuracy {:.4f}\n", epoch + 1, options.epochs,
               scoreDigits(result->loss), result->seconds, validate(*data.test, replicas.front()));
  }
  return options.epochs;
}

int run(const Options& options) {
  example::Paths paths;
  options.data.addTo(paths);
  paths.writes("--model", options.model);
  paths.check();
  example::requireUsable(options.device);
  example::endOnInterrupt(example::kInterruptedBefore);
  auto data = example::loadData(options.data, options.batch, options.seed);
  const auto placed = example::placeImages(data, PlacementWish::Auto, options.device.devices, options.devices,
                                           "it is split there");
  for (const auto& notice : {data.notice, options.device.notice, placed})
    if (!notice.empty()) fmt::print("{}\n", notice);
  fmt::print("data: {}, {} to train with and {} to validate with, from {}\n", data.title,
             plural(*data.train->examples(), "image"), *data.test->examples(), data.origin);
  fmt::print("plan: {} on {}, {} a batch over all, SGD with learning rate {}\n",
             plural(options.devices, "replica"), namesOf(options.device.devices),
             plural(options.batch, "example"), options.learningRate);

  Replicas replicas = makeReplicas(options);
  Scores scores;
  std::int64_t finished = 0;
  bool saved = false;
  example::TrainingInterrupt interrupt(/*saves=*/!options.model.empty());
  const auto saveTrained = [&](bool) {
    requireNoDivergence(scores);
    if (options.model.empty() || scores.empty()) return;
    saveAndCheck(replicas.front(), *data.test, options.model);
    saved = true;
  };
  example::trainAndSave([&] { finished = train(data, replicas, options, interrupt, scores); }, saveTrained,
                        fmt::format("--lr {}", options.learningRate), {options.model, [&](const auto& path) {
                                                                         if (!scores.empty())
                                                                           save(replicas.front(), path);
                                                                         return !scores.empty();
                                                                       }});
  interrupt.end(saved);
  if (!interrupt.requested()) return 0;
  fmt::print("interrupted, with {} of {} finished\n", finished, plural(options.epochs, "epoch"));
  return kInterruptedExit;
}

}  // namespace

int main(int argc, char** argv) {
  return example::runProgram("lenet_from_scratch", [&] {
    const auto options = example::readLenetOptions(argc, argv);
    return options ? example::runOn(options->device, [&] { return run(*options); }) : 0;
  });
}
