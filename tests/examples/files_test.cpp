// Tests the programs with broken files and standard streams.

#include <sys/stat.h>

#include "examples/muster/paths.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/examples/convnet.h"
#include "tests/examples/in_writing.h"
#include "tests/support/child_process.h"
#include "tests/support/environment.h"
#include "tests/support/state_bits.h"
#include "tests/support/thrown.h"

namespace muster {
namespace {

using test::contains;
using test::Convnet;
using test::readFile;
using test::thrown;

/// muster train on few digits, by a shell: `line` has "$@" where the program and its arguments go.
test::Outcome inShell(const Convnet& convnet, const std::string& line, std::vector<std::string> more) {
  auto launch = convnet.launch(Convnet::small({"--quiet", "--epochs", "1"}));
  launch.arguments.insert(launch.arguments.begin(), {"-c", line, "sh", Convnet::kExecutable});
  launch.arguments.insert(launch.arguments.end(), more.begin(), more.end());
  return test::runProgram("/bin/sh", launch);
}

TEST_CASE("a path that is read or written under two options is refused") {
  const test::TemporaryDirectory directory;
  const auto at = [&](const char* name) { return directory / name; };
  test::writeFile(at("book"), "text");
  std::filesystem::create_hard_link(at("book"), at("hard"));
  const auto refusal = [](auto describe) {
    program::Paths paths;
    describe(paths);
    return thrown<InvalidArgument>([&] { paths.check(); });
  };
  CHECK(contains(refusal([&](program::Paths& paths) {
                   paths.reads("--text", at("book"));
                   paths.writes("--model", at("hard"));
                 }),
                 "--text and --model are the same file, " + at("book").string() + ": "));
  CHECK(contains(refusal([&](program::Paths& paths) {
                   paths.writes("--model", at("new"));
                   paths.writes("--json", directory.path() / "." / "new");
                 }),
                 "--model and --json are the same file"));
  CHECK(contains(refusal([&](program::Paths& paths) {
                   paths.writes("--model", at("new"));
                   paths.writesCheckpoints("--checkpoint-dir", at("new"));
                 }),
                 "--model and --checkpoint-dir cannot both be there"));
  CHECK(contains(refusal([&](program::Paths& paths) {
                   paths.writesInto("--report", at("report"), {"a.png"});
                   paths.writes("--json", at("report") / "a.png");
                 }),
                 "--report and --json are the same file"));
  for (const char* name : {"c/checkpoint-epoch-0001.safetensors", "c/./checkpoint-best.safetensors",
                           "c/checkpoint-epoch-0001-iteration-00000001.safetensors"})
    CHECK(contains(refusal([&](program::Paths& paths) {
                     paths.writes("--json", at(name));
                     paths.writesCheckpoints("--checkpoint-dir", at("c"));
                   }),
                   "--json is " + at(name).string() +
                       ", a name of checkpoints, in the directory of --checkpoint-dir: "));
  CHECK_NOTHROW([&] {
    program::Paths paths;
    paths.writes("--model", at("events") / "checkpoint-epoch-0001.safetensors");
    paths.writesInto("--tensorboard", at("events"));
    paths.checkNames();
  }());
  std::filesystem::create_directory(at("pictures"));
  test::writeFile(at("pictures") / "a.png", "a picture");
  std::filesystem::create_symlink("pictures/a.png", at("link"));
  for (const char* picture : {"link", "pictures/a.png", "pictures/new.PNG"})
    CHECK(contains(refusal([&](program::Paths& paths) {
                     paths.readsPictures("--train", at("pictures"));
                     paths.writes("--model", at(picture));
                   }),
                   "--model is " + at(picture).string() + ", a picture in the directory of --train, "));

  program::Paths paths;
  paths.reads("--text", at("book"));
  paths.reads("--resume", at("hard"), /*replacedBy=*/"--model");
  paths.writes("--model", at("hard"));
  paths.writes("--json", "");
  paths.reads("--load", "");
  paths.writesInto("--report", at("report"), {"a.png"});
  paths.readsPictures("--train", at("pictures"));
  paths.writes("--out", at("pictures") / "results.csv");
  paths.writesCheckpoints("--checkpoint-dir", directory.path());
  paths.writes("--best", at("checkpoint.safetensors"));
  CHECK(contains(thrown<InvalidArgument>([&] { paths.check(); }), "--text and --model"));
  std::filesystem::remove(at("book"));
  CHECK_NOTHROW(paths.check());
}

TEST_CASE("a file of other content is not replaced") {
  using program::Content;
  const test::TemporaryDirectory directory;
  const auto file = directory / "file";
  const auto refusal = [&](const std::string& bytes, Content content) -> std::string {
    test::writeFile(file, bytes);
    program::Paths paths;
    paths.writes("--out", file, content);
    try {
      paths.check();
      return "";
    } catch (const FileError& error) {
      return error.what();
    }
  };
  const std::string table = "a,b,kind\n1,2,cat\n",
                    result = R"({"program": "muster", "configuration": {"format": "muster-run/1"}})",
                    run = R"({"format": "muster-run/1"})", model("\x02\0\0\0\0\0\0\0{}", 10);
  CHECK(refusal(table, Content::Model) ==
        file.string() +
            ": would be replaced, but it is no model or weights; remove it, or give another --out");
  for (const auto content :
       {Content::Results, Content::Network, Content::Predictions, Content::Onnx, Content::Deeplearning4j})
    CHECK(contains(refusal(table, content), "would be replaced, but it is no "));
  if (test::kWithPage) CHECK(contains(refusal(table, Content::Page), "it is no page of this program"));
  const std::string network = R"({"format": "muster.MultiLayerConfiguration", "version": 1})",
                    scores = R"({"task": "classification", "examples": 3})";
  for (const auto& other :
       {run, network, std::string(R"({"program": "muster compare", "format": 2})"),
        std::string(R"({"cells": [], "metadata": {}})"), std::string(R"({"name": "page", "version": "1.0"})"),
        std::string(R"({"format": "muster-run/1", "data": {"train": "a", "label": "configuration"}})")})
    CHECK(contains(refusal(other, Content::Results), "it is no result in JSON; give another --out"));
  for (const auto& other : {run, result, scores, std::string(R"({"cells": []})")})
    CHECK(contains(refusal(other, Content::Network), "it is no network's configuration"));
  CHECK(refusal(model, Content::Model).empty());
  CHECK(refusal(result, Content::Results).empty());
  CHECK(refusal(scores, Content::Results).empty());
  CHECK(refusal(network, Content::Network).empty());
  CHECK(refusal("\"prediction of a, b\",prediction of c\r\n", Content::Predictions).empty());
  CHECK(contains(refusal("id,predictions,old prediction\n", Content::Predictions), "it is no predictions"));
  CHECK(refusal("id,prediction,probability\n", Content::Predictions).empty());
  CHECK(refusal("\x08\x07", Content::Onnx).empty());
  CHECK(refusal("PK\x03\x04 configuration.json", Content::Deeplearning4j).empty());
  CHECK(contains(refusal("PK\x03\x04 document.xml", Content::Deeplearning4j), "no model of Deeplearning4j"));
  CHECK(refusal(table, Content::Any).empty());
  CHECK(refusal("", Content::Model).empty());
}

TEST_CASE("a help text that cannot be written is a failure") {
  for (const char* executable :
       {MUSTER_CHAR_LSTM, MUSTER_DATA_PARALLEL, MUSTER_FINE_TUNE, MUSTER_MNIST_CONVNET,
        MUSTER_LENET_FROM_SCRATCH, MUSTER_PROGRAM, MUSTER_OWN_LAYER, MUSTER_OWN_MODEL, MUSTER_OWN_STRATEGY,
        MUSTER_RESNET18_FASHION}) {
    if (!test::isHere(executable)) continue;
    const test::Sandbox sandbox("/bin/sh");
    for (const char* to : {"&-", "/dev/full"}) {
      const auto run = sandbox.run({"-c", fmt::format("exec \"$0\" --help >{}", to), executable});
      CAPTURE(executable);
      CHECK(run.exit == 1);
      CHECK(contains(run.err, ": standard output could not be written: "));
    }
  }
  if (!test::isHere(MUSTER_PROGRAM)) return;
  const test::Sandbox sandbox("/bin/sh");
  for (const char* arguments : {"--version", "help", "help train", "train --help"})
    CHECK(sandbox.run({"-c", fmt::format("exec \"$0\" {} >&-", arguments), MUSTER_PROGRAM}).exit == 1);
}

TEST_CASE("no program overwrites a file that it reads or writes under another option") {
  const Convnet convnet;
  test::writeFile(convnet.directory / "train-labels-idx1-ubyte", "labels");
  std::filesystem::create_symlink("train-labels-idx1-ubyte", convnet.directory / "link");
  const auto refused = [&](std::vector<std::string> arguments, const std::string& why) {
    arguments.insert(arguments.end(), {"--device", "cpu"});
    const auto run = convnet.run(std::move(arguments));
    CAPTURE(run.err);
    CHECK(run.exit == 2);
    CHECK(contains(run.err, why));
    CHECK(run.out.empty());
  };
  refused({"--data", "generated", "--model", "m", "--json", "./m"},
          "training.model and --json are the same file, m");
  refused({"--data", "generated", "--checkpoint-dir", "c", "--model", "c/checkpoint-epoch-0001.safetensors"},
          "training.model is c/checkpoint-epoch-0001.safetensors, a name of checkpoints, in the directory of "
          "listeners.checkpoints.directory: one would replace the other");
  if (test::kWithPage)
    refused({"--data", "generated", "--report", "x", "--model", "x"},
            "training.model and listeners.report cannot both be there: x is to be a file, and x a directory");
  for (const char* model : {"train-labels-idx1-ubyte", "link"})
    refused({"--data-dir", ".", "--model", model},
            "data.directory and training.model are the same file, ./train-labels-idx1-ubyte");
  CHECK(readFile(convnet.directory / "train-labels-idx1-ubyte") == "labels");
  CHECK(convnet.directory.names() == std::set<std::string>{"link", "train-labels-idx1-ubyte"});
}

TEST_CASE("a pipe in place of a file is refused at once") {
  const Convnet convnet;
  REQUIRE(::mkfifo((convnet.directory / "pipe").c_str(), 0600) == 0);
  CHECK(
      contains(test::errorOf(convnet.run({"--data", "generated", "--device", "cpu", "--resume", "pipe"}), 1),
               "pipe: cannot be read: it is not a regular file"));
}

TEST_CASE("closed standard streams do not change the written files") {
  const Convnet convnet;
  const auto usual = test::succeeded(inShell(convnet, "\"$@\"", {"--model", "usual"}));
  for (const char* line : {"\"$@\" <&- >&- 2>&-", "\"$@\" >&-", "\"$@\" 2>&-"}) {
    CAPTURE(line);
    CHECK(inShell(convnet, line, {"--model", "closed"}).exit == 0);
    CHECK((convnet.tensorsIn("closed") == convnet.tensorsIn("usual")));
  }
}

TEST_CASE("with closed standard streams an interrupt's sentence gets into no checkpoint, and it resumes") {
  const auto arguments = [](std::vector<std::string> more) {
    more.insert(more.end(), {"--epochs", "2", "--batch", "8"});
    return Convnet::small(std::move(more));
  };
  const std::vector<std::string> saving{
      "--model", "saved", "--checkpoint-dir", "c", "--checkpoint-iterations", "1"};
  const Convnet undisturbed;
  REQUIRE(undisturbed.run(arguments({"--model", "whole"})).exit == 0);
  std::string writing;
  for (std::uint64_t training = 0; writing.empty(); ++training) {
    REQUIRE(training < test::kTrainingsToWatch);
    const Convnet convnet;
    auto launch = convnet.launch(arguments(saving));
    launch.arguments.insert(launch.arguments.begin(),
                            {"-c", "exec \"$@\" <&- >&- 2>&-", "sh", Convnet::kExecutable});
    test::Program program("/bin/sh", launch);
    const auto checkpoints = convnet.directory / "c";
    writing = test::stopInWriting(program, checkpoints);
    if (contains(writing, "epoch-0002")) writing.clear();  // the last one: nothing is left to interrupt
    if (writing.empty()) continue;
    // Reads them at the end, when the lock file no longer has a name.
    std::map<std::string, std::ifstream> files;
    for (const auto& name : test::namesIn(checkpoints)) files.emplace(name, checkpoints / name);
    const std::string lock = ".checkpoint.muster-lock", holder = readFile(checkpoints / lock);
    program.signal(SIGINT);  // its sentence is written while the checkpoint is incomplete
    program.signal(SIGCONT);
    CHECK(program.wait().exit == 130);
    const auto names = test::namesIn(checkpoints);
    CHECK(test::temporaryIn(names) == "");
    for (const auto& name : names) {
      CAPTURE(name);
      CHECK_NOTHROW(MultiLayerNetwork::load(checkpoints / name));
      files.emplace(name, checkpoints / name);
    }
    CHECK(files.contains(lock));
    for (auto& [name, file] : files) {
      CAPTURE(name);
      const std::string bytes(std::istreambuf_iterator<char>(file), {});
      CHECK_FALSE(contains(bytes, "Interrupted"));
      if (name == lock) CHECK(bytes == holder);
    }
    CHECK_NOTHROW(MultiLayerNetwork::load(convnet.directory / "saved"));
    CHECK(convnet.run(arguments({"--resume", "c", "--model", "resumed"})).exit == 0);
    CHECK(MultiLayerNetwork::load(convnet.directory / "resumed")->epoch() == 2);
    // The interrupt has ended a round early, so compare a training from the checkpoint before it.
    const auto kept = "c/" + writing.substr(1, writing.find(".safetensors") + 11);
    CAPTURE(kept);
    CHECK(convnet.run(arguments({"--resume", kept, "--model", "again"})).exit == 0);
    CHECK((convnet.tensorsIn("again") == undisturbed.tensorsIn("whole")));
  }
}

TEST_CASE("standard output that cannot be written does not stop a training, and is reported at the end") {
  const Convnet convnet;
  CHECK(test::errorOf(inShell(convnet, "\"$@\" >/dev/full", {"--model", "full"}), 1) ==
        "muster: standard output could not be written: No space left on device\n");
  // The pipe's reading end is closed before the program starts.
  const auto broken = inShell(convnet,
                              "mkfifo go; { read go <go; \"$@\"; echo $? >status; } | "
                              "{ exec <&-; echo >go; }",
                              {"--model", "broken"});
  CHECK(broken.err == "muster: standard output could not be written: Broken pipe\n");
  CHECK(readFile(convnet.directory / "status") == "1\n");
  CHECK((convnet.tensorsIn("full") == convnet.tensorsIn("broken")));
  CHECK_NOTHROW(MultiLayerNetwork::load(convnet.directory / "broken"));
}

TEST_CASE("help that cannot be written gives a failure") {
  const Convnet convnet;
  CHECK(contains(test::errorOf(inShell(convnet, "\"$@\" >/dev/full", {"--help"}), 1),
                 "standard output could not be written"));
}

TEST_CASE("the network is saved even if a checkpoint cannot be written") {
  const Convnet convnet;
  // Directories have all names that the process tries for the checkpoint's temporary file.
  auto launch = convnet.launch(
      Convnet::small({"--epochs", "2", "--quiet", "--checkpoint-dir", "c", "--model", "late"}));
  launch.arguments.insert(
      launch.arguments.begin(),
      {"-c",
       "mkdir c; seq -f \"c/.checkpoint-epoch-0001.safetensors.$$.%g.tmp\" 0 999 | xargs mkdir; exec \"$@\"",
       "sh", Convnet::kExecutable});
  const auto run = test::runProgram("/bin/sh", launch);
  CHECK(run.exit == 1);
  CHECK_MESSAGE(run.err ==
                    "muster: a listener failed after iteration 3: c/checkpoint-epoch-0001.safetensors: "
                    "cannot be written: File exists\n",
                run.err);
  CHECK(contains(run.out, "saved: late, with what was trained before the failure\n"));
  REQUIRE(convnet.runSmall({"--epochs", "2", "--quiet", "--model", "whole"}).exit == 0);
  REQUIRE(convnet.runSmall({"--epochs", "2", "--quiet", "--resume", "late", "--model", "late"}).exit == 0);
  // The failed run had no training state to save, so the files differ in the number of rounds.
  const auto late = MultiLayerNetwork::load(convnet.directory / "late");
  const auto whole = MultiLayerNetwork::load(convnet.directory / "whole");
  CHECK(test::stateBits(*late) == test::stateBits(*whole));
}

}  // namespace
}  // namespace muster
