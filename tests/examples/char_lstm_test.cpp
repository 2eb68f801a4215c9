#include <doctest/doctest.h>
#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>
#include <csignal>
#include <fstream>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/utf8.h"
#include "muster/core/io/model_file.h"
#include "muster/core/io/safetensors.h"
#include "muster/core/nn/models/char_lstm.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/text.h"
#include "tests/examples/early_interrupt.h"
#include "tests/examples/sandbox.h"
#include "tests/support/arrays.h"

namespace muster {
namespace {

using test::contains;
using test::readFile;

/// The program char_lstm with a small text.
class CharLstm : public test::Sandbox {
 public:
  CharLstm() : Sandbox(MUSTER_CHAR_LSTM) {
    std::string text;
    for (int i = 0; i < 60; ++i) text += "the quick brown fox jümps over the lazy dog\n";
    write("text", text);
  }

  void write(const std::string& name, std::string_view bytes) const {
    std::ofstream(directory / name, std::ios::binary) << bytes;
  }

  /// Trains a small model; `more` adds to or replaces the test's options.
  test::Outcome train(const std::vector<std::string>& more = {}) const {
    std::map<std::string, std::string> options{
        {"--text", "text"}, {"--steps", "20"}, {"--units", "24"},  {"--layers", "1"},  {"--batch", "8"},
        {"--epochs", "4"},  {"--lr", "0.02"},  {"--length", "60"}, {"--samples", "2"}, {"--device", "cpu"}};
    for (std::size_t i = 0; i + 1 < more.size(); i += 2) options[more[i]] = more[i + 1];
    std::vector<std::string> arguments;
    for (const auto& [name, value] : options) arguments.insert(arguments.end(), {name, value});
    return run(std::move(arguments));
  }
};

/// The scores printed at the ends of epochs.
std::vector<double> scoresIn(const std::string& text) {
  std::vector<double> scores;
  const std::string label = ": score ";
  for (auto at = text.find(label); at != std::string::npos; at = text.find(label, at + 1))
    scores.push_back(std::stod(text.substr(at + label.size())));
  return scores;
}

/// The output from the first final sample to the end of the samples.
std::string samplesIn(const std::string& text) {
  const auto begin = text.find("--- sample\n");
  REQUIRE(begin != std::string::npos);
  return text.substr(begin, text.rfind("---\n") - begin);
}

TEST_CASE("char_lstm learns, samples during the training, and writes the same text from the saved model") {
  const CharLstm program;
  const auto run = program.train({"--json", "result.json"});
  CAPTURE(run.out);
  CAPTURE(run.err);
  REQUIRE(run.exit == 0);
  CHECK(run.out.starts_with("text: text, 2640 characters, 29 different ones\n"));
  CHECK(contains(run.out, "lstm1"));
  CHECK(contains(run.out, "plan: "));
  CHECK(contains(run.out, "--- after epoch 1\n"));
  CHECK(contains(run.out,
                 "saved: char-lstm.safetensors; loaded again, it gives the same outputs, bit for bit. "
                 "--load samples from it\njson: result.json\n--- sample\n"));
  const auto scores = scoresIn(run.err);
  REQUIRE(scores.size() == 4);
  CHECK(scores[0] < 3.5);  // ln 29 = 3.4
  CHECK(scores[3] < 0.7 * scores[0]);

  const auto result = boost::json::parse(readFile(program.directory / "result.json")).as_object();
  CHECK(result.at("dataFrom") == "text");
  CHECK(result.at("differentCharacters").to_number<int>() == 29);
  CHECK(result.at("learningRate").to_number<double>() == 0.02);
  CHECK(result.at("interrupted") == false);
  const auto& epochs = result.at("epochs").as_array();
  REQUIRE(epochs.size() == 4);
  CHECK(epochs[3].at("epoch").to_number<int>() == 4);
  CHECK(std::abs(epochs[3].at("loss").to_number<double>() - scores[3]) < 1e-3 * scores[3]);  // as rounded

  const std::vector<std::string> load{"--load", "char-lstm.safetensors", "--length", "60"};
  const auto loaded = program.run(load);
  REQUIRE(loaded.exit == 0);
  CHECK(samplesIn(loaded.out) == samplesIn(run.out));
  auto other = load;
  other.insert(other.end(), {"--seed", "7", "--prompt", "the jü", "--samples", "1"});
  const auto prompted = program.run(other);
  CHECK(prompted.out.starts_with("--- sample\nthe jü"));
  CHECK(samplesIn(prompted.out) != samplesIn(run.out));
}

TEST_CASE("text that char_lstm writes cannot send commands to the terminal") {
  const CharLstm program;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "\x1B[2J";
  program.write("commands", text);
  const auto trained = program.train({"--text", "commands", "--epochs", "1", "--model", "m"});
  CHECK(trained.exit == 0);
  const auto loaded = program.run({"--load", "m", "--length", "60"});
  for (const auto& out : {trained.out, loaded.out}) {
    CHECK(contains(out, "\\x1b"));
    CHECK_FALSE(contains(out, "\x1B"));
  }
}

TEST_CASE("the same command gives the same file, which can be loaded") {
  const CharLstm program;
  for (const char* name : {"a.safetensors", "b.safetensors"}) {
    const auto run = program.train(
        {"--epochs", "1", "--layers", "2", "--dropout", "0.2", "--model", name, "--workers", "3"});
    REQUIRE(run.exit == 0);
    CHECK(contains(run.out, "loaded again, it gives the same outputs, bit for bit"));
  }
  const auto path = program.directory / "a.safetensors";
  CHECK(test::readFile(path) == test::readFile(program.directory / "b.safetensors"));
  CHECK(readModelNotes(path).at("char_lstm.vocabulary").starts_with("\n abcdefg"));
  Tensor window = Tensor::empty({2, 20}, DType::Int64);
  for (std::int64_t i = 0; i < 40; ++i) window.data<std::int64_t>()[i] = 5 * i % 29;
  CHECK(MultiLayerNetwork::load(path)->output(window).shape() == Shape{2, 20, 29});
}

TEST_CASE("Ctrl-C saves a model that can write text, and exits with 130") {
  const CharLstm program;
  test::Program running(MUSTER_CHAR_LSTM, program.launch({"--text", "text", "--steps", "20", "--units", "24",
                                                          "--epochs", "100000", "--sample-every", "0"}));
  REQUIRE(running.awaitText("epoch 1/"));
  running.signal(SIGINT);
  const auto outcome = running.wait();
  CHECK(outcome.exit == 130);
  CHECK(contains(outcome.err, "Interrupted: "));
  CHECK(contains(outcome.out, " of 100000 epochs finished\nsaved: char-lstm.safetensors"));
  CHECK(program.run({"--load", "char-lstm.safetensors", "--length", "5"}).exit == 0);
}

TEST_CASE("Ctrl-C before the first step saves nothing") {
  const CharLstm program;
  test::checkInterruptBeforeFirstStep(
      program, MUSTER_CHAR_LSTM,
      [](const std::string& workers) {
        return std::vector<std::string>{
            "--text",   "text",   "--steps",        "20",    "--units",       "128",
            "--epochs", "100000", "--workers",      workers, "--pin-threads", "false",
            "--device", "cpu",    "--sample-every", "0",     "--model",       "earlier"};
      },
      "earlier");
}

TEST_CASE("a model whose characters do not match its network is refused") {
  const CharLstm program;
  REQUIRE(program.train({"--epochs", "1"}).exit == 0);
  const auto network = MultiLayerNetwork::load(program.directory / "char-lstm.safetensors");
  saveModel(*network, program.directory / "more",
            {{"char_lstm.vocabulary", "abcdefghijklmnopqrstuvwxyzäöüßé"}});
  const auto run = program.run({"--load", "more"});
  CHECK(run.exit == 1);
  CHECK(run.err ==
        "char_lstm: more: holds 31 characters, but its network outputs [20, 29] for inputs [20]\n");
}

TEST_CASE("windows that a file declares are refused before memory is allocated for them") {
  const CharLstm program;
  const auto loaded = [&](std::int64_t steps, const std::vector<char32_t>& characters) {
    auto configuration = charLstm(std::ssize(characters), {.units = 2, .layers = 1, .embedding = 2});
    configuration.inputShape = {steps};
    MultiLayerNetwork network(configuration);
    network.init();
    saveModel(network, program.directory / "m", {{"char_lstm.vocabulary", encodeUtf8(characters)}});
    const auto run = program.run({"--load", "m", "--samples", "1000"});
    CHECK(run.exit == 1);
    CHECK(run.out.empty());
    return run.err;
  };
  CHECK(loaded(1'000'000'000, {U'a', U'b'}) ==
        "char_lstm: m: declares inputs [1000000000], but char_lstm takes windows of at most 65536 "
        "characters\n");
  std::vector<char32_t> many(20'000);
  std::iota(many.begin(), many.end(), U'\u4E00');
  // 1000 samples of 65536 characters; each has an int64, and float32 for it and for 20000 predictions.
  const auto error = loaded(65536, many);
  CHECK_MESSAGE(error.starts_with("char_lstm: m: declares inputs [65536], which need memory: a batch and its "
                                  "predictions take 5243666.4 MB, but of the "),
                error);
}

TEST_CASE("a text that cannot be learned is refused with 1 and a sentence") {
  const CharLstm program;
  program.write("latin1",
                "Gr\xFC\xDF"
                "e aus dem letzten Jahrhundert");
  program.write("short", "too short");
  program.write("empty", "");
  program.write("one", std::string(100, 'a'));
  const std::vector<std::pair<std::string, std::string>> refused{
      {"latin1", "latin1: is not UTF-8: the byte 0xFC at offset 2 cannot begin a character"},
      {"missing", "missing: cannot be read: No such file or directory"},
      {"one", "one: has one character only, so there is nothing to learn"},
      {"short", "short: too short: it has 9 characters, but a window of 20 and the next character need 21"},
      {"empty", "empty: too short: it has 0 characters"}};
  for (const auto& [text, sentence] : refused) {
    const auto run = program.train({"--text", text});
    CHECK(run.exit == 1);
    CHECK(run.out.empty());
    CHECK_MESSAGE(run.err.starts_with("char_lstm: " + sentence), run.err);
  }
  CHECK(program.train({"--model", "nowhere/model"})
            .err.starts_with("char_lstm: nowhere/model: cannot be written"));
  program.write("not a model", "x");
  CHECK(program.run({"--load", "not a model"}).exit == 1);
}

TEST_CASE("help explains every option, and invalid options exit with 2") {
  const CharLstm program;
  const auto help = program.run({"--help"});
  CHECK(help.exit == 0);
  for (const char* option : {"text",
                             "model",
                             "load",
                             "help",
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
                             "seed",
                             "samples",
                             "length",
                             "temperature",
                             "prompt",
                             "sample-every"})
    CHECK_MESSAGE(contains(help.out, "\n  --" + std::string(option) + " "), option);

  const std::vector<std::pair<std::vector<std::string>, std::string>> refused{
      {{}, "give the text to learn with --text, or a saved model with --load; --help says more"},
      {{"--load", "m", "--text", "text"}, "--text is for training, and --load trains nothing"},
      {{"--load", "m", "--curves", "a.curves.jsonl"}, "--curves is for training, and --load trains nothing"},
      {{"--load", "m", "--group", "a"}, "--group is for training, and --load trains nothing"},
      {{"--text", "text", "--temperature", "0"}, "--temperature must be a positive number, got 0"},
      {{"--text", "text", "--steps", "0"}, "--steps must be between 1 and 65536, got 0"},
      {{"--text", "text", "--prompt", "öl"},
       "--prompt: the text that was learned lacks a character: vocabulary: it does not know the character "
       "\"ö\" at "
       "place 0"}};
  for (const auto& [arguments, sentence] : refused) {
    const auto run = program.run(arguments);
    CHECK(run.exit == 2);
    CHECK(run.out.empty());
    CHECK(run.err == "char_lstm: " + sentence + "\n");
  }
}

}  // namespace
}  // namespace muster
