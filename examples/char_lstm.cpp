// A model that learns a text character by character and writes text of its own, trained by several workers
// whose parameters are averaged. `char_lstm --help` says how to use it.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "examples/char_lstm/options.h"
#include "examples/char_lstm/sampler.h"
#include "examples/support/check_saved.h"
#include "examples/support/divergence.h"
#include "examples/support/keep_network.h"
#include "examples/support/paths.h"
#include "examples/support/program.h"
#include "examples/support/training_interrupt.h"
#include "examples/support/training_json.h"
#include "muster/core/base/interrupt.h"
#include "muster/core/base/plural.h"
#include "muster/core/base/printable_text.h"
#include "muster/core/device/memory_room.h"
#include "muster/core/io/model_file.h"
#include "muster/core/listeners/collect_scores_listener.h"
#include "muster/core/nn/models/char_lstm.h"
#include "muster/datasets/text.h"
#include "muster/parallel/parallel_wrapper.h"

using namespace muster;

namespace {

/// The characters are kept in the model's file under this name.
constexpr const char* kVocabularyNote = "char_lstm.vocabulary";

void print(const std::vector<std::string>& samples, std::string_view title) {
  for (const auto& sample : samples) fmt::print("--- {}\n{}\n", title, printableLines(sample));
  fmt::print("---\n");
}

/// Writes samples between epochs.
class SampleListener final : public Listener {
 public:
  SampleListener(const example::Sampler& sampler, const example::CharLstmArguments& arguments)
      : sampler_(sampler), arguments_(arguments) {}

  void onEpochEnd(const EpochEvent& event) override {
    const std::int64_t finished = event.epoch + 1;
    const bool last = finished == arguments_.epochs;  // the final sample is printed after saving
    if (last || arguments_.sampleEvery == 0 || finished % arguments_.sampleEvery != 0) return;
    print(sampler_.draw(event.trainer.model(), arguments_.seed), fmt::format("after epoch {}", finished));
  }

 private:
  const example::Sampler& sampler_;
  const example::CharLstmArguments& arguments_;
};

/// The first batch: `batch` sequences from the beginning of the text.
CharacterIterator beginningOf(const CharacterText& text, const example::CharLstmArguments& a) {
  const auto count = std::min(std::ssize(text.indices), a.steps * a.batch + 1);
  CharacterText beginning{text.vocabulary, {text.indices.begin(), text.indices.begin() + count}, text.origin};
  return {std::make_shared<const CharacterText>(std::move(beginning)), a.steps, a.batch};
}

/// Writes the network and its characters.
void write(Network& network, const CharacterIterator& data, const std::filesystem::path& path) {
  saveModel(network, path, {{kVocabularyNote, encodeUtf8(data.vocabulary().characters())}});
}

/// Saves the network and its characters, and loads it again to check the file.
void save(Network& network, const CharacterIterator& data, const example::CharLstmArguments& a) {
  CharacterIterator text = beginningOf(*data.text(), a);
  example::writeHereOrElsewhere(a.model,
                                [&](const std::filesystem::path& path) { write(network, data, path); });
  fmt::print("saved: {}; {}. --load samples from it\n", a.model.string(),
             example::checkSaved(network, a.model, text));
}

/// Writes the file of `--json`.
void writeJson(const example::CharLstmArguments& a, const CharacterIterator& data,
               const CollectScoresListener& scores, std::string_view plan, bool interrupted) {
  std::vector<example::EpochResult> epochs;
  for (const auto& epoch : scores.epochs()) epochs.push_back({.epoch = epoch.epoch + 1, .loss = epoch.score});
  const auto putOptions = [&](JsonWriter& json) {
    json.put("characters", std::ssize(data.text()->indices));
    json.put("differentCharacters", data.vocabulary().size());
    json.put("workers", std::int64_t{a.workers});
    json.put("batch", a.batch);
    json.put("steps", a.steps);
    json.put("units", a.units);
    json.put("layers", a.layers);
    json.put("embedding", a.embedding);
    json.put("dropout", a.dropout);
    json.put("learningRate", a.learningRate);
    json.put("clipNorm", a.clipNorm);
    json.put("seed", a.seed);
  };
  const auto from = a.text.string();
  example::TrainingJson{.data = "text",
                        .dataFrom = from,
                        .options = putOptions,
                        .plan = plan,
                        .interrupted = interrupted,
                        .epochs = epochs}
      .write(a.json);
  fmt::print("json: {}\n", a.json.string());
}

int train(const example::CharLstmArguments& a) {
  example::Paths paths;
  paths.reads("--text", a.text);
  paths.writes("--model", a.model);
  paths.writes("--json", a.json);
  a.watch.addTo(paths);
  paths.check();
  example::requireUsable(a.device);
  example::endOnInterrupt(example::kInterruptedBefore);
  const auto seed = static_cast<std::uint64_t>(a.seed);
  CharacterIterator data(a.text, a.steps, a.batch, seed);
  const auto& vocabulary = data.vocabulary();
  if (vocabulary.size() < 2) throw FileError(a.text, "has one character only, so there is nothing to learn");
  const example::Sampler sampler(vocabulary, a.steps, a.sample);

  auto configuration =
      charLstm(vocabulary.size(),
               {.units = a.units, .layers = a.layers, .embedding = a.embedding, .dropout = a.dropout});
  configuration.seed = seed;
  configuration.updater = Adam{.learningRate = a.learningRate};
  configuration.clipNorm = a.clipNorm;
  configuration.inputShape = {a.steps};
  MultiLayerNetwork network(configuration);
  network.init();
  example::requireDiskRoom(a.model, example::savedBytes(network));

  const auto scores = std::make_shared<CollectScoresListener>();
  Listeners listeners = {scores};
  a.watch.addProgress(listeners);
  listeners.push_back(std::make_shared<SampleListener>(sampler, a));
  const example::Watching watching(a.watch);
  watching.addTo(listeners);
  auto wrapper = a.builder(network).listeners(listeners).build();
  watching.describe(wrapper.plan(), network.summary());
  watching.options(a.hyperParameters(), {});
  if (!a.device.notice.empty()) fmt::print("{}\n", a.device.notice);
  fmt::print("text: {}, {}, {} different ones\n\n{}plan: {}; {} of {}, {} a batch\n", a.text.string(),
             plural(data.text()->indices.size(), "character"), vocabulary.size(), network.summary(),
             wrapper.plan(), plural(*data.examples(), "sequence"), plural(a.steps, "character"), a.batch);
  const example::DivergenceCheck diverged(network, data);
  example::TrainingInterrupt interrupt;
  example::trainAndSave(
      [&] { watching.during([&] { wrapper.fit(data, a.epochs, interrupt.token()); }); },
      [&](bool) {  // network now holds the averaged parameters
        if (interrupt.requested())
          fmt::print("interrupted, with {} of {} finished\n", network.epoch(), plural(a.epochs, "epoch"));
        if (network.iteration() == 0) return fmt::print("ended before the first step: nothing was saved\n");
        diverged.requireNone(network);
        save(network, data, a);
      },
      fmt::format("--lr {}", a.learningRate), {a.model, [&](const std::filesystem::path& path) {
                                                 if (network.iteration() > 0) write(network, data, path);
                                                 return network.iteration() > 0;
                                               }});
  interrupt.end(network.iteration() > 0);
  const bool interrupted = interrupt.requested();
  if (!a.json.empty()) writeJson(a, data, *scores, wrapper.plan(), interrupted);
  if (!interrupted) print(sampler.draw(network, a.seed), "sample");
  return interrupted ? kInterruptedExit : 0;
}

/// Loads a network that this program saved. @throws FileError for any other network.
std::unique_ptr<MultiLayerNetwork> loadNetwork(const std::filesystem::path& path,
                                               const Vocabulary& vocabulary) {
  auto network = MultiLayerNetwork::load(path);
  const Shape& input = network->configuration().inputShape;
  if (input.rank() != 1 || network->outputShapes().back().second != Shape{input[0], vocabulary.size()})
    throw FileError(path, fmt::format("holds {}, but its network outputs {} for inputs {}",
                                      plural(vocabulary.size(), "character"),
                                      network->outputShapes().back().second.toString(), input.toString()));
  if (input[0] > example::CharLstmArguments::kMostSteps)
    throw FileError(path, fmt::format("declares inputs {}, but char_lstm takes windows of at most {} "
                                      "characters",
                                      input.toString(), example::CharLstmArguments::kMostSteps));
  return network;
}

/// Before memory is allocated for it: throws if there is no room for a batch and its predictions.
void requireRoomForSamples(const Shape& input, const Vocabulary& vocabulary, std::int64_t samples) {
  const auto characters = static_cast<double>(samples) * static_cast<double>(input[0]);
  const auto bytesOfOne = sizeof(std::int64_t) + sizeof(float) * static_cast<double>(1 + vocabulary.size());
  requireMemoryRoom(characters * bytesOfOne, "a batch and its predictions take",
                    "--samples 1 needs the least");
}

int load(const example::CharLstmArguments& a) {
  const auto notes = readModelNotes(a.load);
  const auto found = notes.find(kVocabularyNote);
  if (found == notes.end()) throw FileError(a.load, "holds no characters; it was not saved by char_lstm");
  const Vocabulary vocabulary(decodeUtf8(found->second, a.load));
  const auto network = loadNetwork(a.load, vocabulary);
  const Shape& input = network->configuration().inputShape;
  const example::Sampler sampler(vocabulary, input[0], a.sample);
  try {
    requireRoomForSamples(input, vocabulary, a.sample.count);
    print(sampler.draw(*network, a.seed), "sample");
  } catch (const OutOfMemory& error) {
    throw FileError(a.load,
                    fmt::format("declares inputs {}, which need memory: {}", input.toString(), error.what()));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return example::runProgram("char_lstm", [&] {
    const auto arguments = example::readCharLstmArguments(argc, argv);
    if (!arguments) return 0;
    return example::runOn(arguments->device,
                          [&] { return arguments->load.empty() ? train(*arguments) : load(*arguments); });
  });
}
