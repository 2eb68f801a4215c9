#include "examples/char_lstm/options.h"

namespace example {
namespace {

using muster::require;

constexpr std::string_view kIntroduction =
    R"(Learns which character comes next in a text, with several workers at once, and writes text of its own.

  char_lstm --text book.txt                      train on a book, and see after each epoch what it writes
  char_lstm --load char-lstm.safetensors --prompt "The " --length 500 --temperature 0.6
                                                 write with a model that was trained before

Any text in UTF-8 will do, plain or packed by gzip; a hundred thousand characters are little, a million are
good. The score starts near the logarithm of the number of characters: about 4 for English. Below 2 there are
words, below 1.5 mostly right ones. If it stays above 2: more epochs, more --units, a text of one kind. If it
becomes very low and the samples recite the text: --dropout 0.2, or more text. The temperature is for reading:
low ones repeat themselves, high ones misspell.
)";

/// Options that would have no effect are refused rather than ignored.
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
               "page-port"},
              "is for training, and --load trains nothing");
}

}  // namespace

std::optional<CharLstmArguments> readCharLstmArguments(int argc, const char* const* argv) {
  CharLstmArguments a;
  CommandLine line(kIntroduction);
  line.group("Files");
  line.add("text", a.text, "FILE", "the text to learn, in UTF-8");
  line.add("model", a.model, "FILE", "where the trained model is saved, with its characters");
  line.add("json", a.json, "FILE", "write options, plan and the results of each epoch");
  line.add("load", a.load, "FILE", "write samples with a saved model, and train nothing");
  line.group("Network");
  line.add("steps", a.steps, "N", "characters that the model is shown in one piece", between(1, 65536));
  line.add("units", a.units, "N", "of each LSTM", between(1, 65536));
  line.add("layers", a.layers, "N", "LSTMs, one after the other", between(1, 64));
  line.add("embedding", a.embedding, "N", "numbers that stand for a character", between(1, 65536));
  line.add("dropout", a.dropout, "X", "share of the numbers between layers that is left out in training",
           belowOne);
  line.group("Training");
  line.add("epochs", a.epochs, "N", "passes over the text", atLeast(1));
  line.add("batch", a.batch, "N", "pieces a step of a worker", between(1, 65536));
  line.add("lr", a.learningRate, "X", "learning rate of Adam", positive);
  line.add("clip-norm", a.clipNorm, "X", "clip gradients to this L2 norm; 0: do not clip",
           [](const char*, double norm) {
             require(norm >= 0 && std::isfinite(norm), "--clip-norm must be 0 or a positive number, got {}",
                     norm);
           });
  a.describe(line, /*modes=*/false);
  line.add("seed", a.seed, "N", "of the first weights, the order of the text and the samples", atLeast(0));
  line.group("Samples");
  line.add("samples", a.sample.count, "N", "how many are written at a time", between(1, 1000));
  line.add("length", a.sample.length, "N", "characters of a sample", between(1, 1'000'000));
  line.add("temperature", a.sample.temperature, "X", "0.1 is cautious, 1 as the text is, 2 wild", positive);
  line.add("prompt", a.sample.prompt, "TEXT", "what a sample begins with");
  line.add("sample-every", a.sampleEvery, "N", "epochs between samples; 0: at the end only", atLeast(0));
  a.watch.describe(line);
  if (!line.read(argc, argv)) return std::nullopt;
  checkCombinations(line);
  a.watch.check(line);
  if (a.load.empty()) a.take(line);
  return a;
}

}  // namespace example
