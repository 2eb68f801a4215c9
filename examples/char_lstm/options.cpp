#include "examples/char_lstm/options.h"

namespace example {
namespace {

using muster::require;

constexpr std::string_view kIntroduction =
    R"(Learns which character comes next in a text, with several workers at once, and writes samples.

  char_lstm --text book.txt                      train on a book, with samples after each epoch
  char_lstm --load char-lstm.safetensors --prompt "The " --length 500 --temperature 0.6
                                                 write a sample with a trained model

The text is UTF-8, plain or packed by gzip; a hundred thousand characters are few, a million are enough. The
score starts near the logarithm of the number of different characters: about 4 for English. Below 2 samples
have words, below 1.5 most words are right. If the score stays above 2, try more epochs, more --units or a
text of one kind. If it is very low and the samples repeat the text, try --dropout 0.2 or more text. Samples
of a low temperature repeat themselves, those of a high one misspell.
)";

/// Rejects options that would have no effect.
void checkCombinations(const CommandLine& line) {
  require(line.said("text") || line.said("load"),
          "give the text to learn with --text, or a saved model with --load; --help says more");
  if (!line.said("load")) return;
  line.refuse({"text",
               "model",
               "json",
               "steps",
               "units",
               "layers",
               "embedding",
               "dropout",
               "epochs",
               "batch",
               "lr",
               "clip-norm",
               "workers",
               "averaging-frequency",
               "strategy",
               "strategy-options",
               "threads-per-worker",
               "pin-threads",
               "math-mode",
               "device",
               "sample-every",
               "tensorboard",
               "watch",
               "page",
               "page-port",
               "curves",
               "group"},
              "is for training, and --load trains nothing");
}

}  // namespace

std::optional<CharLstmArguments> readCharLstmArguments(int argc, const char* const* argv) {
  CharLstmArguments a;
  CommandLine line(kIntroduction);
  line.group("Files");
  line.add("text", a.text, "FILE", "the text to learn, in UTF-8");
  line.add("model", a.model, "FILE", "save the trained model and its characters there");
  line.add("json", a.json, "FILE", "write options, plan and the results of each epoch");
  line.add("load", a.load, "FILE", "write samples with a saved model, and train nothing");
  line.group("Network");
  line.add("steps", a.steps, "N", "characters of a training sequence",
           between(1, CharLstmArguments::kMostSteps));
  line.add("units", a.units, "N", "units of each LSTM", between(1, 65536));
  line.add("layers", a.layers, "N", "LSTMs, one after the other", between(1, 64));
  line.add("embedding", a.embedding, "N", "size of the vector of a character", between(1, 65536));
  line.add("dropout", a.dropout, "X", "dropout rate after each LSTM", belowOne);
  line.group("Training");
  line.add("epochs", a.epochs, "N", "passes over the text", atLeast(1));
  line.add("batch", a.batch, "N", "sequences in a batch of a worker", between(1, 65536));
  line.add("lr", a.learningRate, "X", "learning rate of Adam", positive);
  line.add("clip-norm", a.clipNorm, "X", "clip gradients to this L2 norm; 0: do not clip",
           [](const char*, double norm) {
             require(norm >= 0 && std::isfinite(norm), "--clip-norm must be 0 or a positive number, got {}",
                     norm);
           });
  a.describe(line, /*modes=*/false);
  line.add("seed", a.seed, "N", "seed of the initial weights, the order of the text and the samples",
           atLeast(0));
  line.group("Samples");
  line.add("samples", a.sample.count, "N", "samples to write at a time", between(1, 1000));
  line.add("length", a.sample.length, "N", "characters of a sample", between(1, 1'000'000));
  line.add("temperature", a.sample.temperature, "X",
           "temperature of sampling: below 1 likelier characters, above 1 more random ones", positive);
  line.add("prompt", a.sample.prompt, "TEXT", "text that each sample begins with");
  line.add("sample-every", a.sampleEvery, "N", "epochs between samples; 0: at the end only", atLeast(0));
  a.watch.describe(line);
  if (!line.read(argc, argv)) return std::nullopt;
  checkCombinations(line);
  a.watch.check(line);
  if (a.load.empty()) a.take(line);
  return a;
}

}  // namespace example
