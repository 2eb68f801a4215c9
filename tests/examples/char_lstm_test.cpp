#include <doctest/doctest.h>

#include "muster/core/io/model_file.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/examples/sandbox.h"

namespace muster {
namespace {

/// The program char_lstm with a small text.
struct CharLstm : test::Sandbox {
  CharLstm() : Sandbox(MUSTER_CHAR_LSTM) {
    std::string text;
    for (int i = 0; i < 60; ++i) text += "the quick brown fox jümps over the lazy dog\n";
    write("text", text);
  }
};

constexpr const char* kSmall = " --steps 20 --units 24 --lr 0.02 --length 60";

/// The text from the last sample on.
std::string lastSample(const std::string& text) {
  const auto end = text.rfind("---\n"), begin = text.rfind("---\n", end - 1);
  REQUIRE(begin != std::string::npos);
  return text.substr(begin, end - begin);
}

double lossOf(const std::string& text, const std::string& epoch) {
  const auto at = text.find("epoch " + epoch + ": loss ");
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(text.find("loss ", at) + 5));
}

TEST_CASE("char_lstm learns, writes samples, and writes the same text from the saved model") {
  const CharLstm program;
  const auto run = program.succeeds(std::string("--text text --epochs 6 --model net") + kSmall);
  CHECK(run.out.starts_with("text: text, 2640 characters, 29 different ones\n"));
  CHECK_CONTAINS(run.out, "plan: 2 workers");
  CHECK(run.out.ends_with("\nsaved: net\n"));
  CHECK(lossOf(run.out, "1/6") < 3.5);  // ln 29 = 3.4
  CHECK(lossOf(run.out, "6/6") < 0.7 * lossOf(run.out, "1/6"));
  CHECK(readModelNotes(program.directory / "net").at("char_lstm.vocabulary").starts_with("\n abcdefg"));

  CHECK(lastSample(program.succeeds("--model net --length 60").out) == lastSample(run.out));
  const auto prompted = program.succeeds("--model net --length 60 --seed 7 --prompt 'the jü'");
  CHECK(prompted.out.starts_with("---\nthe jü"));
  CHECK(prompted.out.size() > 60);

  program.succeeds(std::string("--text text --epochs 6 --model again") + kSmall);
  CHECK(program.read("net") == program.read("again"));
}

TEST_CASE("text that char_lstm writes cannot send commands to the terminal") {
  const CharLstm program;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "\x1B[2J";
  program.write("commands", text);
  for (const auto& line :
       {std::string("--text commands --epochs 1 --model m") + kSmall, std::string("--model m --length 60")}) {
    const auto out = program.succeeds(line).out;
    CHECK_CONTAINS(out, "\\x1b");
    CHECK_LACKS(out, "\x1B");
  }
}

TEST_CASE("a text that cannot be learned, or continued, is refused with a sentence") {
  const CharLstm program;
  program.write("latin1", "Gr\xFC\xDF");
  program.write("one", std::string(100, 'a'));
  const auto refused = [&](const std::string& line, const std::string& sentence) {
    const auto run = program(line);
    CHECK(run.exit != 0);
    CHECK(run.out == "");
    CHECK_CONTAINS(run.err, "char_lstm: " + sentence);
  };
  refused("--text latin1", "latin1: is not UTF-8: the byte 0xFC at offset 2 cannot begin a character");
  refused("--text missing", "missing: cannot be read: No such file or directory");
  refused("--text one", "one has one character only, so there is nothing to learn");
  refused("--text text --model text", "--text and --model are the same file, text");
  refused("--text one --model x --steps 100", "one: too short: ");
  refused("", "char-lstm.safetensors: cannot be read");
  program.succeeds(std::string("--text text --epochs 1 --model net") + kSmall);
  refused("--model net --prompt öl", "vocabulary: it does not know the character \"ö\" at place 0");
  MultiLayerNetwork other({.inputShape = {2}, .layers = {Output{.classes = 2}}});
  other.init();
  other.save(program.directory / "other");
  refused("--model other", "other: holds no characters: char_lstm has not saved it");
}

}  // namespace
}  // namespace muster
