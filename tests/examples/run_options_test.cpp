// The options of muster train, which set fields of any run file.
#include "examples/muster/run_options.h"

#include <boost/json.hpp>

#include "muster/parallel/run/run_file.h"
#include "tests/examples/program.h"
#include "tests/support/test.h"

namespace muster {
namespace {

namespace json = boost::json;

/// A field, by its pointer, of the run of examples/mnist.json with these options.
json::value field(const std::string& options, const char* pointer) {
  program::FieldChoices choices;
  program::CommandLine line("");
  program::describeFields(line, choices);
  const auto words = test::wordsOf(options);
  std::vector<const char*> arguments{"muster train"};
  for (const auto& word : words) arguments.push_back(word.c_str());
  REQUIRE(line.read(static_cast<int>(arguments.size()), arguments.data()));
  const auto text = test::readFile(MUSTER_MNIST_RUN);
  const auto run = json::parse(RunFile::parse(text, choices.all()).toJson());
  boost::system::error_code missing;
  const auto* const found = run.find_pointer(pointer, missing);
  return found != nullptr ? *found : json::value("missing");
}

}  // namespace

TEST_CASE("each option sets its field") {
  const std::string saving = "--checkpoint-dir c ", page = "--page --curves a.curves.jsonl ";
  const std::vector<std::tuple<std::string, const char*, json::value>> rows{
      {"--workers 4", "/training/workers", 4},
      {"--averaging-frequency 10", "/training/strategy/every", 10},
      {"--strategy diloco", "/training/strategy/name", "diloco"},
      {"--epochs 7", "/training/epochs", 7},
      {"--batch 64", "/data/batch", 64},
      {"--updater adam", "/network/updater/type", "adam"},
      {"--lr 0.5", "/network/updater/learningRate/value", 0.5},
      {"--lr .5", "/network/updater/learningRate/value", 0.5},
      {"--lr 2.", "/network/updater/learningRate/value", 2.0},
      {"--momentum 0.25", "/network/updater/momentum", 0.25},
      {"--l2 0.125", "/network/l2", 0.125},
      {"--seed 9", "/data/seed", 9},
      {"--seed 9", "/network/seed", 9},
      {"--threads-per-worker 2", "/training/threadsPerWorker", 2},
      {"--pin-threads false", "/training/pinThreads", false},
      {"--prefetch 0", "/training/prefetch", 0},
      {"--math-mode fp32", "/training/mathMode", "fp32"},
      {"--math-mode bf16", "/training/mathMode", "bf16"},
      {"--device cpu", "/training/devices", "cpu"},
      {"--placement host", "/training/placement", "host"},
      {"--data generated", "/data/type", "generated"},
      {"--data-dir 7", "/data/directory", "7"},
      {"--examples 60", "/data/trainExamples", 60},
      {"--examples 60", "/data/testExamples", 60},
      {"--train-examples 61", "/data/trainExamples", 61},
      {"--test-examples 62", "/data/testExamples", 62},
      {"--model true", "/training/model", "true"},
      {"--resume c", "/training/resume", "c"},
      {saving, "/listeners/checkpoints/directory", "c"},
      {saving + "--checkpoint-every 2", "/listeners/checkpoints/everyEpochs", 2},
      {saving + "--checkpoint-iterations 3", "/listeners/checkpoints/everyIterations", 3},
      {saving + "--checkpoint-minutes 0.5", "/listeners/checkpoints/everyMinutes", 0.5},
      {saving + "--keep 4", "/listeners/checkpoints/keepLast", 4},
      {"--test-every 2", "/listeners/testEvery", 2},
      {"--test-iterations 5", "/listeners/testIterations", 5},
      {"--report r", "/listeners/report", "r"},
      {"--tensorboard t", "/listeners/tensorBoard", "t"},
      {page, "/listeners/curves", "a.curves.jsonl"},
      {page, "/listeners/page", true},
      {page + "--page-port 8080", "/listeners/pagePort", 8080},
      {page + "--group g", "/listeners/group", "g"}};
  for (const auto& [options, pointer, expected] : rows) {
    CAPTURE(options);
    CHECK(field("", pointer) != expected);
    CHECK(field(options, pointer) == expected);
  }
}

TEST_CASE("a new strategy, updater or data set drops the fields of the old one, in any order") {
  CHECK(field("--strategy averaging", "/training/strategy/every") == 3);
  const std::string diloco = "--strategy-options rate=0.5 --strategy diloco";
  CHECK(field(diloco, "/training/strategy/rate") == 0.5);
  CHECK(field(diloco, "/training/strategy/every") != 3);  // its own default
  const std::string adam = "--lr 0.25 --updater adam";
  CHECK(field(adam, "/network/updater/momentum") == "missing");
  CHECK(field(adam, "/network/updater/learningRate/value") == 0.25);
  const std::string drawn = "--examples 50 --test-examples 20 --data generated";
  CHECK(field(drawn, "/data/trainExamples") == 50);
  CHECK(field(drawn, "/data/testExamples") == 20);
  CHECK(field(drawn, "/data/directory") == "missing");
}

TEST_CASE("--set wins over an option, and a list is one option of a strategy") {
  CHECK(field("--set training.workers=5 --workers 4", "/training/workers") == 5);
  const std::string listed = "--strategy asynchronous --strategy-options speeds=1,0.5,every=7";
  CHECK(field(listed, "/training/strategy/speeds") == "1,0.5");
  CHECK(field(listed, "/training/strategy/every") == 7);
}

TEST_CASE("what may be set, in a message of the library, is said by the option that sets it") {
  CHECK(program::asOptions("is busy; training.devices=cpu computes on the CPU instead") ==
        "is busy; --device cpu computes on the CPU instead");
  CHECK(program::asOptions("without them: listeners.testEvery=0 listeners.earlyStopping=null") ==
        "without them: --test-every 0 --set listeners.earlyStopping=null");
  CHECK(program::asOptions("(data.header=false)") == "(--set data.header=false)");
  CHECK(program::asOptions("needs MUSTER_STORE, MUSTER_NODE and MUSTER_INTERFACE") ==
        "needs --store, --node and --interface");
  for (const auto* same :
       {"", "training.workers must be 1, got 0", "--set training.workers=0: no", "rate=0.5, a.b=1",
        "--arm \"averaging training.workers=0\": no", "--tune network.l2=0,1: no"})
    CHECK(program::asOptions(same) == same);
  CHECK(program::asSets("is busy; training.devices=cpu computes on the CPU instead") ==
        "is busy; --set training.devices=cpu computes on the CPU instead");
  CHECK(program::asSets("--set data.batch=0: needs MUSTER_STORE") ==
        "--set data.batch=0: needs MUSTER_STORE");
}

TEST_CASE("an error names the option that causes it, or else the file") {
  const test::TemporaryDirectory directory;
  const auto path = (directory / "run.json").string();
  const auto refusal = [&](const program::FieldChoices& choices) {
    return test::thrown<InvalidArgument>([&] { program::readRun(path, choices); });
  };
  const program::FieldChoices choices{.byOption = {"training.epochs=2", "training.workers=0"},
                                      .options = {"--epochs 2", "--workers 0"},
                                      .sets = {"data.batch=4"}};
  auto text = test::readFile(MUSTER_MNIST_RUN);
  test::writeFile(path, text);
  CHECK(refusal(choices) == "--workers 0: training.workers must be between 1 and 1024, got 0");
  CHECK(refusal({.byOption = {}, .options = {}, .sets = {"data.batch=0"}}) ==
        "--set data.batch=0: data.batch must be between 1 and 65536, got 0");
  text.replace(text.find("\"workers\": 2"), 12, "\"workers\": 0");
  test::writeFile(path, text);
  CHECK(refusal(choices) == path + ": training.workers must be between 1 and 1024, got 0");
}

TEST_CASE("instead of an option that a command does not have, another one or --set is told") {
  using enum program::FieldUse;
  using program::insteadOf;
  CHECK(insteadOf("--mode", Training) == "--strategy");
  CHECK(insteadOf("--average-updaters", Training) == "--strategy-options updaterState=keep");
  CHECK(insteadOf("--learning-rate", Training) == "--lr");
  CHECK(insteadOf("--validation-examples", Training) == "--set data.validationExamples=VALUE");
  for (const auto use : {Comparing, Testing}) {
    CHECK(insteadOf("--learning-rate", use) == "--set network.updater.learningRate=VALUE");
    CHECK(insteadOf("--seed", use) == "--set data.seed=N --set network.seed=N");
    for (const auto* const unused :
         {"--page", "--curves", "--report", "--checkpoint-dir", "--model", "--resume"})
      CHECK(insteadOf(unused, use).empty());
  }
  CHECK(insteadOf("--epochs", Comparing) == "--set training.epochs=N");
  CHECK(insteadOf("--restore-best", Comparing) == "--set listeners.earlyStopping.restoreBest=VALUE");
  for (const auto* const unused : {"--epochs", "--workers", "--restore-best"})
    CHECK(insteadOf(unused, Testing).empty());
  for (const auto use : {Training, Comparing, Testing}) CHECK(insteadOf("--frobnicate", use).empty());
  CHECK(program::setsOf("--batch", Comparing) == "--set data.batch=N");
  CHECK(program::setsOf("--width", Comparing).empty());  // a field, and no option of a training
}

}  // namespace muster
