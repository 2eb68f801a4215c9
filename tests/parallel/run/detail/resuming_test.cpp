#include "muster/parallel/run/detail/resuming.h"

#include "muster/core/listeners/checkpoint_lock.h"
#include "muster/core/nn/training_state.h"
#include "muster/parallel/run/detail/run_network.h"
#include "muster/parallel/run/detail/saved_data.h"
#include "tests/support/log_lines.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::detail;

namespace {

using Sets = std::vector<std::string>;

RunFile runWith(const Sets& sets = {}) {
  return RunFile::parse(
      R"({"format": "muster-run/1", "training": {"devices": "cpu"},
          "data": {"type": "mixtures", "trainExamples": 16, "testExamples": 4, "batch": 8, "seed": 5},
          "network": {"name": "mlp", "hidden": 4, "updater": {"type": "sgd", "learningRate": 0.5}}})",
      sets);
}

/// Files of that run's model, in a directory with an empty one.
struct Files : test::TemporaryDirectory {
  Files() { std::filesystem::create_directory(empty); }
  std::string save(const std::string& name, const ModelNotes& notes) const {
    saveModel(*network, *this / name, notes);
    return (*this / name).string();
  }
  std::string save(const std::string& name) const { return save(name, notesOf(runWith(), data)); }

  LoadedData data = loadData(runWith().data);
  std::unique_ptr<Network> network = makeNetwork(runWith(), data);
  const std::string empty = (*this / "c").string();
};

ResumedRun resumed(const std::string& path, Sets sets = {}, int nodes = 1) {
  sets.push_back("training.resume=" + path);
  auto run = runWith(sets);
  return resumedBy(run, nodes);
}

std::string refusal(const std::string& path, const Sets& sets = {}, int nodes = 1) {
  return test::thrown<FileError>([&] { resumed(path, sets, nodes); });
}

}  // namespace

TEST_CASE("a run resumes one that says the same in other words; what may differ is told, the rest refused") {
  const Files files;
  const auto model = files.save("m");
  CHECK(resumed(model).file == model);
  for (const auto& sets : {Sets(),
                           {"network.updater.learningRate=0.5", "network.l2=null", "data.splitSeed=5",
                            "training.epochs=9", "listeners.testEvery=1"}})
    CHECK(resumed(model, sets).changes == "");
  CHECK(resumed(model, {"training.workers=2", "training.groups=2"}).changes ==
        "training.groups 1 (now 2), training.workers 1 (now 2)");
  CHECK(refusal(model, {"data.batch=4", "training.workers=2", "network.updater.learningRate=0.25",
                        "training.mathMode=fp32"}) ==
        model +
            ": cannot be resumed by this run: it was trained with data.batch 8 (now 4), "
            "network.updater.learningRate.value 0.5 (now 0.25), training.mathMode \"auto\" (now \"fp32\")");
  CHECK(refusal(model,
                {"data.batch=4", "data.dropLast=true", "data.seed=7", "data.trainExamples=12",
                 "data.validationExamples=4", "network.updater.learningRate=0.25", "training.mathMode=fp32"})
            .ends_with("data.validationExamples 0 (now 4), and 2 more differ"));
  const auto foreign = files.save("foreign", {});
  CHECK(refusal(foreign) == foreign + ": cannot be resumed: it was not saved by muster train");
}

TEST_CASE(
    "a directory gives its newest checkpoint, and without one a training begins if it is the run's own") {
  const Files files;
  const auto none = (files / "none").string();
  for (const auto& [path, why] : {std::pair(none, "there is no such file or directory"),
                                  {files.empty, "the directory holds no checkpoint"}}) {
    const auto advice = fmt::format(
        "training.resume={0} and listeners.checkpoints.directory={0} together begin a training that the same "
        "run continues later",
        path);
    CHECK(refusal(path) == fmt::format("{}: cannot be resumed: {}; {}", path, why, advice));
    CHECK(refusal(path, {}, /*nodes=*/2).ends_with(" or copy it to each. On every node, " + advice));
    CHECK(resumed(path, {"listeners.checkpoints=" + path}).file == "");
  }
  files.save("c/checkpoint-epoch-0009.safetensors");
  const auto newest = files.save("c/checkpoint-epoch-0010.safetensors");
  for (const auto& sets : {Sets{}, {"listeners.checkpoints=" + files.empty}})
    CHECK(resumed(files.empty, sets).file == newest);
  const test::LogLines log;
  logNothingToResume("c");
  CHECK_CONTAINS(log.all().at(0), "nothing to resume in c: this node begins the training; if other nodes ");
}

TEST_CASE("batches that are trained in the epoch are counted, also later ones") {
  const Files files;
  CHECK(batchesTrained(*files.network) == 0);
  files.network->trainingState() =
      positionState(*files.network, *files.data.train, {.nextBatch = 3, .trainedLater = {4, 6}});
  CHECK(batchesTrained(*files.network) == 5);
}

TEST_CASE("a model that was trained on other data is told before it is replaced") {
  const Files files;
  const DataSource csv{.type = "csv", .train = "a.csv"}, mnist{.type = "mnist", .directory = "d"};
  const std::tuple<DataSource, DataSource, std::string> cases[] = {
      {csv, csv, ""},
      {csv, {.type = "csv", .train = "b.csv"}, "a.csv"},
      {csv, mnist, "a.csv"},
      {mnist, {.type = "mnist"}, "d"},
      {mnist, {.type = "fashion", .directory = "d"}, "mnist"},
  };
  auto run = runWith({"training.model=" + (files / "m").string()});
  CHECK(replacesRemark(run) == "");
  test::writeFile(files / "m", "no model");
  CHECK(replacesRemark(run) == "");
  for (const auto& [before, now, name] : cases) {
    run.data = before;
    const auto model = files.save("m", notesOf(run, files.data));
    run.data = now;
    CHECK(replacesRemark(run) == (name.empty() ? ""
                                               : "replaces " + model + ", which was trained on " + name +
                                                     "; training.model names another file"));
  }
}

TEST_CASE("checkpoints of another training, ended or not, are found before the data are read") {
  const Files files;
  const Sets own{"listeners.checkpoints=" + files.empty};
  const auto run = runWith(own), without = runWith();
  const auto advice = [&](const RunFile& of, const std::string& resumes = "") {
    const auto text = test::thrown<FileError>([&] { detail::requireOwnCheckpoints(of, resumes); });
    return text.substr(std::min(text.find("; "), text.size()));
  };
  const std::string separate =
      ", name another directory, listeners.checkpoints.directory=DIRECTORY, or remove ";
  CHECK(advice(run) == "");
  const auto best = files.save("c/checkpoint-best.safetensors");
  CHECK(resumed(files.empty, own).file == "");
  CHECK(advice(run) == "; continue it with training.resume=" + best + separate + "this file");
  const auto newest = files.save("c/checkpoint-epoch-0002.safetensors");
  CHECK(advice(run) == "; continue it with training.resume=" + files.empty + separate + "these files");
  CHECK(advice(runWith({own[0], "training.resume=" + files.empty}), newest) == "");
  CHECK(advice(without) == "");

  CHECK_NOTHROW(requireNoOtherTraining(run));
  const CheckpointLock lock(files.empty, "checkpoint");
  CHECK_THROWS_AS(requireNoOtherTraining(run), FileError);
  CHECK_NOTHROW(requireNoOtherTraining(without));
}
