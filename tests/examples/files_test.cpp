// Tests the programs with broken files and standard streams.

#include "examples/muster/paths.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/examples/convnet.h"
#include "tests/support/state_bits.h"
#include "tests/support/thrown.h"
#include "tests/support/working_directory.h"

namespace muster {
namespace {

using program::Content;
using program::Paths;
using test::ConvnetRun;
using test::thrown;

auto loaded(const ConvnetRun& muster, const std::string& name) {
  return MultiLayerNetwork::load(muster.directory / name);
}

/// What a program reads and writes, each as in "reads --text book".
Paths pathsOf(std::initializer_list<std::string> lines) {
  Paths paths;
  for (const auto& line : lines) {
    const auto words = test::wordsOf(line);
    const std::string how = words.at(0), option = words.at(1), path = words.at(2);
    if (how == "reads") paths.reads(option, path);
    if (how == "readsPictures") paths.readsPictures(option, path);
    if (how == "writes") paths.writes(option, path);
    if (how == "writesReport") paths.writesInto(option, path, {"a.png"});
    if (how == "writesCheckpoints") paths.writesCheckpoints(option, path);
  }
  return paths;
}

TEST_CASE("a path that is read or written under two options is refused") {
  const test::WorkingDirectory here;
  test::writeFile("book", "text");
  std::filesystem::create_hard_link("book", "hard");
  std::filesystem::create_directory("pictures");
  test::writeFile("pictures/a.png", "a picture");
  std::filesystem::create_symlink("pictures/a.png", "link");
  const auto refusal = [](std::initializer_list<std::string> lines) {
    return thrown<InvalidArgument>([&] { pathsOf(lines).check(); });
  };
  CHECK_CONTAINS(refusal({"reads --text book", "writes --model hard"}),
                 "--text and --model are the same file, book: ");
  CHECK_CONTAINS(refusal({"writes --model new", "writes --json ./new"}),
                 "--model and --json are the same file");
  CHECK_CONTAINS(refusal({"writes --model new", "writesCheckpoints --checkpoint-dir new"}),
                 "--model and --checkpoint-dir cannot both be there");
  CHECK_CONTAINS(refusal({"writesReport --report report", "writes --json report/a.png"}),
                 "--report and --json are the same file");
  for (const std::string name : {"c/checkpoint-epoch-0001.safetensors", "c/./checkpoint-best.safetensors",
                                 "c/checkpoint-epoch-0001-iteration-00000001.safetensors"})
    CHECK_CONTAINS(
        refusal({"writes --json " + name, "writesCheckpoints --checkpoint-dir c"}),
        fmt::format("--json is {}, a name of checkpoints, in the directory of --checkpoint-dir: ", name));
  for (const std::string picture : {"link", "pictures/a.png", "pictures/new.PNG"})
    CHECK_CONTAINS(refusal({"readsPictures --train pictures", "writes --model " + picture}),
                   fmt::format("--model is {}, a picture in the directory of --train, ", picture));

  auto paths = pathsOf({"reads --text book", "writes --model hard", "writes --json ''", "reads --load ''",
                        "writesReport --report report", "readsPictures --train pictures",
                        "writes --out pictures/results.csv", "writesCheckpoints --checkpoint-dir .",
                        "writes --best checkpoint.safetensors"});
  paths.reads("--resume", "hard", /*replacedBy=*/"--model");
  CHECK_CONTAINS(thrown<InvalidArgument>([&] { paths.check(); }), "--text and --model");
  std::filesystem::remove("book");
  CHECK_NOTHROW(paths.check());
  Paths events;
  events.writes("--model", "events/checkpoint-epoch-0001.safetensors");
  events.writesInto("--tensorboard", "events");
  CHECK_NOTHROW(events.checkNames());
}

TEST_CASE("a file of other content is not replaced") {
  const test::WorkingDirectory here;
  const auto refusal = [&](const std::string& bytes, Content content) {
    test::writeFile("file", bytes);
    Paths paths;
    paths.writes("--out", "file", content);
    return thrown<FileError>([&] { paths.check(); });
  };
  const std::string table = "a,b,kind\n1,2,cat\n",
                    result = R"({"program": "muster", "configuration": {"format": "muster-run/1"}})",
                    run = R"({"format": "muster-run/1"})", model("\x02\0\0\0\0\0\0\0{}", 10),
                    network = R"({"format": "muster.MultiLayerConfiguration", "version": 1})",
                    scores = R"({"task": "classification", "examples": 3})", notebook = R"({"cells": []})";
  for (const auto& [content, kept] : {std::pair{Content::Model, model},
                                      {Content::Model, ""},
                                      {Content::Results, result},
                                      {Content::Results, scores},
                                      {Content::Network, network},
                                      {Content::Predictions, "\"prediction of a, b\",prediction of c\r\n"},
                                      {Content::Predictions, "id,prediction,probability\n"},
                                      {Content::Onnx, "\x08\x07"},
                                      {Content::Deeplearning4j, "PK\x03\x04 configuration.json"},
                                      {Content::Any, table}})
    CHECK(refusal(kept, content) == "");
  CHECK(refusal(table, Content::Model) ==
        "file: would be replaced, but it is no model or weights; remove it, or give another --out");
  for (const auto content :
       {Content::Results, Content::Network, Content::Predictions, Content::Onnx, Content::Deeplearning4j})
    CHECK_CONTAINS(refusal(table, content), "would be replaced, but it is no ");
  if (test::kWithPage) CHECK_CONTAINS(refusal(table, Content::Page), "it is no page of this program");
  for (const auto& other :
       {run, network, notebook, std::string(R"({"program": "muster compare", "format": 2})"),
        std::string(R"({"name": "page", "version": "1.0"})"),
        std::string(R"({"format": "muster-run/1", "data": {"train": "a", "label": "configuration"}})")})
    CHECK_CONTAINS(refusal(other, Content::Results), "it is no result in JSON; give another --out");
  for (const auto& other : {run, result, scores, notebook})
    CHECK_CONTAINS(refusal(other, Content::Network), "it is no network's configuration");
  CHECK_CONTAINS(refusal("id,predictions,old prediction\n", Content::Predictions), "it is no predictions");
  CHECK_CONTAINS(refusal("PK\x03\x04 document.xml", Content::Deeplearning4j), "no model of Deeplearning4j");
}

TEST_CASE("no program overwrites a file that it reads or writes under another option") {
  const ConvnetRun muster;
  const std::array mine{"train-labels-idx1-ubyte", "rows.csv", "model.safetensors"};
  for (const char* name : mine) muster.write(name, "mine");
  std::filesystem::create_symlink(mine[0], muster.directory / "link");
  const auto names = muster.directory.names();
  const std::string mnist = "train run.json --data mnist --data-dir . --model ",
                    csv = R"( run.json --set 'data={"type": "csv", "train": "rows.csv"}' )";
  for (const auto& [line, first, second] : {
           std::array<std::string, 3>{"train run.json --model m --json ./m", "training.model", "--json"},
           {"train run.json --model run.json", "the run file", "training.model"},
           {"train run.json --json run.json", "the run file", "--json"},
           {"train" + csv + "--model rows.csv", "data.train", "training.model"},
           {mnist + mine[0], "data.directory", "training.model"},
           {mnist + "link", "data.directory", "training.model"},
           {"predict run.json --out run.json", "the run file", "--out"},
           {"predict run.json --out model.safetensors", "training.model", "--out"},
           {"predict" + csv + "--out rows.csv", "data.train", "--out"},
       })
    muster.refuses(line, first + " and " + second + " are the same file, ");
  muster.refuses("train run.json --checkpoint-dir c --model c/checkpoint-epoch-0001.safetensors",
                 "training.model is c/checkpoint-epoch-0001.safetensors, a name of checkpoints, in the ");
  if (test::kWithPage)
    muster.refuses("train run.json --report x --model x",
                   "training.model and listeners.report cannot both be there: ");
  CHECK(muster.directory.names() == names);
  for (const char* name : mine) CHECK(muster.read(name) == "mine");
}

TEST_CASE("closed standard streams do not change the written files") {
  const ConvnetRun muster;
  const std::string train = "muster train run.json --quiet --model ";
  test::succeeded(muster.shell(train + "usual"));
  for (const std::string closed : {"<&- >&- 2>&-", ">&-", "2>&-"}) {
    CAPTURE(closed);
    CHECK(muster.shell(train + "closed " + closed).exit == 0);
    CHECK((muster.tensorsIn("closed") == muster.tensorsIn("usual")));
  }
}

TEST_CASE("standard output that cannot be written does not stop a training, and is reported at the end") {
  const ConvnetRun muster;
  const std::string train = "muster train run.json --quiet --model ";
  CHECK(test::errorOf(muster.shell(train + "full >/dev/full"), 1) ==
        "muster: standard output could not be written: No space left on device\n");
  // The pipe's reading end is closed before the program starts.
  const auto broken = muster.shell("mkfifo go; { read go <go; " + train +
                                   "broken; echo $? >status; } | { exec <&-; echo >go; }");
  CHECK(broken.err == "muster: standard output could not be written: Broken pipe\n");
  CHECK(muster.read("status") == "1\n");
  CHECK((muster.tensorsIn("full") == muster.tensorsIn("broken")));
  CHECK_NOTHROW(loaded(muster, "broken"));
}

TEST_CASE("the network is saved even if a checkpoint cannot be written") {
  const ConvnetRun muster;
  const std::string train = "train run.json --epochs 2 --quiet --model ";
  // Directories have all names that the process tries for the checkpoint's temporary file.
  const auto run = muster.shell(
      "mkdir c; seq -f \"c/.checkpoint-epoch-0001.safetensors.$$.%g.tmp\" 0 999 | xargs mkdir; exec muster " +
      train + "late --checkpoint-dir c");
  CHECK(test::errorOf(run, 1) ==
        "muster: a listener failed after iteration 3: c/checkpoint-epoch-0001.safetensors: cannot be "
        "written: File exists\n");
  CHECK_CONTAINS(run.out, "saved: late, with what was trained before the failure\n");
  muster.succeeds(train + "whole");
  muster.succeeds(train + "late --resume late");
  // The failed run had no training state to save, so the files differ in the number of rounds.
  CHECK(test::stateBits(*loaded(muster, "late")) == test::stateBits(*loaded(muster, "whole")));
}

}  // namespace
}  // namespace muster
