#include "examples/char_lstm/options.h"

#include <cmath>
#include <iostream>

#include "examples/support/command_line.h"

namespace example {
namespace {

namespace po = boost::program_options;
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

/// Options whose meaning is only known when all have been read.
struct Rest {
  std::string text, load, model;
  DeviceOption device;
};

po::options_description describe(CharLstmArguments& a, Rest& rest) {
  po::options_description all(kLineLength), network("Network", kLineLength),
      training("Training", kLineLength), samples("Samples", kLineLength), files("Files", kLineLength);
  files.add_options()                                                                                      //
      ("text", value(rest.text, "FILE"), "the text to learn, in UTF-8")                                    //
      ("model", withDefault(rest.model, "FILE"), "where the trained model is saved, with its characters")  //
      ("load", value(rest.load, "FILE"), "write samples with a saved model, and train nothing")            //
      ("help", "this text");
  network.add_options()                                                                        //
      ("steps", withDefault(a.steps, "N"), "characters that the model is shown in one piece")  //
      ("units", withDefault(a.units, "N"), "of each LSTM")                                     //
      ("layers", withDefault(a.layers, "N"), "LSTMs, one behind the other")                    //
      ("embedding", withDefault(a.embedding, "N"), "numbers that stand for a character")       //
      ("dropout", withDefault(a.dropout, "X"),
       "share of the numbers between layers that is left out in training");
  training.add_options()                                                                     //
      ("epochs", withDefault(a.epochs, "N"), "passes over the text")                         //
      ("batch", withDefault(a.batch, "N"), "pieces a step of a worker")                      //
      ("lr", withDefault(a.learningRate, "X"), "learning rate of Adam")                      //
      ("clip-norm", withDefault(a.clipNorm, "X"), "longest gradient; 0: any")                //
      ("workers", withDefault(a.workers, "N"), "threads, each with a replica of the model")  //
      ("averaging-frequency", withDefault(a.averagingFrequency, "N"),
       "iterations of each worker between averages")                                                //
      ("threads-per-worker", withDefault(a.threadsPerWorker, "N"), "threads that one worker uses")  //
      ("pin-threads", withDefault(a.pinThreads, "BOOL"), "pin each worker to cores of its own")     //
      ("seed", withDefault(a.seed, "N"), "of the first weights, the order of the text and the samples");
  rest.device.describe(training);
  samples.add_options()                                                                //
      ("samples", withDefault(a.sample.count, "N"), "how many are written at a time")  //
      ("length", withDefault(a.sample.length, "N"), "characters of a sample")          //
      ("temperature", withDefault(a.sample.temperature, "X"),
       "0.1 is cautious, 1 as the text is, 2 wild")                            //
      ("prompt", value(a.sample.prompt, "TEXT"), "what a sample begins with")  //
      ("sample-every", withDefault(a.sampleEvery, "N"), "epochs between samples; 0: at the end only");
  return all.add(files).add(network).add(training).add(samples);
}

bool isPositive(double x) {
  return x > 0 && std::isfinite(x);
}

void checkRanges(const CharLstmArguments& a) {
  requireRange<std::int64_t>("steps", a.steps, 1, 65536);
  requireRange<std::int64_t>("units", a.units, 1, 65536);
  requireRange<std::int64_t>("layers", a.layers, 1, 64);
  requireRange<std::int64_t>("embedding", a.embedding, 1, 65536);
  require(a.dropout >= 0 && a.dropout < 1, "--dropout must be at least 0 and below 1, got {}", a.dropout);
  requireAtLeast<std::int64_t>("epochs", a.epochs, 1);
  requireRange<std::int64_t>("batch", a.batch, 1, 65536);
  require(isPositive(a.learningRate), "--lr must be a positive number, got {}", a.learningRate);
  require(a.clipNorm == 0 || isPositive(a.clipNorm), "--clip-norm must be 0 or a positive number, got {}",
          a.clipNorm);
  requireRange("workers", a.workers, 1, 1024);
  requireAtLeast<std::int64_t>("averaging-frequency", a.averagingFrequency, 1);
  requireRange("threads-per-worker", a.threadsPerWorker, 1, 1024);
  requireAtLeast<std::int64_t>("seed", a.seed, 0);
  requireRange<std::int64_t>("samples", a.sample.count, 1, 1000);
  requireRange<std::int64_t>("length", a.sample.length, 1, 1000000);
  require(isPositive(a.sample.temperature), "--temperature must be a positive number, got {}",
          a.sample.temperature);
  requireAtLeast<std::int64_t>("sample-every", a.sampleEvery, 0);
}

/// Options that would have no effect are refused rather than ignored.
void checkCombinations(const po::variables_map& given) {
  require(said(given, "text") || said(given, "load"),
          "give the text to learn with --text, or a saved model with --load; --help says more");
  if (!said(given, "load")) return;
  for (const char* option : {"text", "model", "steps", "units", "layers", "embedding", "dropout", "epochs",
                             "batch", "lr", "clip-norm", "workers", "averaging-frequency",
                             "threads-per-worker", "pin-threads", "device", "sample-every"})
    require(!said(given, option), "--{} is for training, and --load trains nothing", option);
}

}  // namespace

std::optional<CharLstmArguments> readCharLstmArguments(int argc, const char* const* argv) {
  CharLstmArguments arguments;
  Rest rest;
  rest.model = arguments.model.string();
  const auto all = describe(arguments, rest);
  const auto given = parseCommandLine(argc, argv, all);
  if (given.count("help") > 0) {
    std::cout << kIntroduction << all;
    return std::nullopt;
  }
  checkCombinations(given);
  arguments.text = rest.text;
  arguments.load = rest.load;
  arguments.model = rest.model;
  require(!arguments.model.empty(), "--model needs the name of a file");
  checkRanges(arguments);
  if (arguments.load.empty()) arguments.device = rest.device.choose();
  return arguments;
}

}  // namespace example
