// A model that learns a text character by character, trained by several workers whose parameters are
// averaged, and writes text of its own. `char_lstm --help` says how to use it.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/core/base/printable_text.h"
#include "muster/core/base/random.h"
#include "muster/core/base/utf8.h"
#include "muster/core/io/model_file.h"
#include "muster/core/nn/models/char_lstm.h"
#include "muster/datasets/text.h"
#include "muster/parallel/parallel_wrapper.h"
#include "options.h"

using namespace muster;

namespace {

constexpr const char* kHelp = R"(Learns which character comes next in a text, and writes text of its own.

  char_lstm --text book.txt                        train on a book, and write a sample after each epoch
  char_lstm --prompt "The " --temperature 0.6      write a sample with the trained model

The text is UTF-8, plain or packed by gzip; a hundred thousand characters are few, a million are enough. The
loss starts near the logarithm of the number of different characters: about 4 for English. Below 2 samples
have words, below 1.5 most words are right. Samples of a low temperature repeat themselves, those of a high one
misspell.)";

/// The characters are kept in the model's file under this name.
constexpr const char* kVocabularyNote = "char_lstm.vocabulary";

struct Options {
  std::string text, model = "char-lstm.safetensors", prompt;
  int workers = 2;
  std::int64_t epochs = 10, units = 128, steps = 64, length = 200, seed = 123;
  double learningRate = 0.002, temperature = 0.8;
};

/// Samples from probabilities^(1 / temperature); `uniform` is a random number in [0, 1).
std::int64_t drawIndex(std::span<const float> probabilities, double temperature, double uniform) {
  const double top = *std::ranges::max_element(probabilities);
  std::vector<double> sums;  // cumulative
  double sum = 0;
  for (const double p : probabilities) sums.push_back(sum += std::pow(p / top, 1 / temperature));
  const auto found = std::ranges::upper_bound(sums, uniform * sum);
  return std::min<std::int64_t>(found - sums.begin(), std::ssize(sums) - 1);
}

/// Writes text of the model's own. The model reads a window, the last `steps` characters: what comes after
/// the last one does not matter to an LSTM, and is left at 0.
void writeSample(Model& model, const Vocabulary& vocabulary, std::int64_t steps, const Options& o) {
  std::vector<std::int64_t> text = vocabulary.indicesOf(decodeUtf8(o.prompt, "--prompt"));
  if (text.empty()) text = {vocabulary.find(U'\n').value_or(0)};
  const RandomStream random(static_cast<std::uint64_t>(o.seed), "sample");
  Batch batch;
  Tensor predictions;  // [1, steps, vocabulary]
  for (std::int64_t i = 0; i < o.length; ++i) {
    Tensor& window = Batch::ensure(batch.features, "features", {1, steps}, DType::Int64);
    const std::int64_t length = std::min(std::ssize(text), steps);
    std::ranges::fill(window.span<std::int64_t>(), 0);
    std::copy(text.end() - length, text.end(), window.data<std::int64_t>());
    model.output(batch, predictions);
    const auto size = static_cast<std::size_t>(vocabulary.size());
    const auto last = predictions.span<float>().subspan(static_cast<std::size_t>(length - 1) * size, size);
    text.push_back(drawIndex(last, o.temperature, random.uniform(static_cast<std::uint64_t>(i))));
  }
  std::vector<char32_t> characters;
  for (const auto index : text) characters.push_back(vocabulary.character(index));
  fmt::print("---\n{}\n---\n", printableLines(encodeUtf8(characters)));
}

void train(const Options& o) {
  require(o.text != o.model, "--text and --model are the same file, {}", o.text);
  const auto seed = static_cast<std::uint64_t>(o.seed);
  CharacterIterator data(o.text, o.steps, /*batch=*/32, seed);
  const Vocabulary& vocabulary = data.vocabulary();
  require(vocabulary.size() > 1, "{} has one character only, so there is nothing to learn", o.text);
  auto configuration = charLstm(vocabulary.size(), {.units = o.units, .layers = 2, .embedding = 32});
  configuration.seed = seed;
  configuration.updater = Adam{.learningRate = o.learningRate};
  configuration.clipNorm = 5;
  configuration.inputShape = {o.steps};
  MultiLayerNetwork network(configuration);
  network.init();

  auto wrapper = ParallelWrapper::Builder(network).workers(o.workers).averagingFrequency(3).build();
  fmt::print("text: {}, {} characters, {} different ones\n\n{}plan: {}\n", o.text,
             data.text()->indices.size(), vocabulary.size(), network.summary(), wrapper.plan());
  for (std::int64_t epoch = 1; epoch <= o.epochs; ++epoch) {
    wrapper.fit(data);  // the network then holds the averaged parameters
    fmt::print("epoch {}/{}: loss {:.4f}\n", epoch, o.epochs, network.score());
    writeSample(network, vocabulary, o.steps, o);
    saveModel(network, o.model, {{kVocabularyNote, encodeUtf8(vocabulary.characters())}});
  }
  fmt::print("saved: {}\n", o.model);
}

void writeFromFile(const Options& o) {
  const auto notes = readModelNotes(o.model);
  const auto characters = notes.find(kVocabularyNote);
  if (characters == notes.end()) throw FileError(o.model, "holds no characters: char_lstm has not saved it");
  const Vocabulary vocabulary(decodeUtf8(characters->second, o.model));
  const auto network = MultiLayerNetwork::load(o.model);
  writeSample(*network, vocabulary, network->configuration().inputShape[0], o);
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  return example::runExample(
      argc, argv, kHelp,
      {{"text", &o.text, "the text to learn; without it a trained model writes a sample"},
       {"model", &o.model, "the file of the trained model and its characters"},
       {"workers", &o.workers, "threads, each with a replica"},
       {"epochs", &o.epochs, "passes over the text"},
       {"units", &o.units, "units of each of the two LSTMs"},
       {"steps", &o.steps, "characters of a training sequence"},
       {"lr", &o.learningRate, "learning rate of Adam"},
       {"seed", &o.seed, "of the first weights, the order of the text and the samples"},
       {"prompt", &o.prompt, "text that samples begin with"},
       {"length", &o.length, "characters that a sample adds to it"},
       {"temperature", &o.temperature, "below 1 likelier characters, above 1 more random ones"}},
      [&] { o.text.empty() ? writeFromFile(o) : train(o); });
}
