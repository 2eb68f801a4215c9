// Trainings by run files, from C++.
#include "muster/parallel/run/run_session.h"

#include <boost/json.hpp>

#include "muster/core/io/json_value.h"
#include "muster/core/io/model_file.h"
#include "muster/core/nn/layers.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/gaussian_mixtures.h"
#include "muster/datasets/image_set_iterator.h"
#include "muster/datasets/source/named_images.h"
#include "muster/parallel/run/detail/preparation.h"
#include "muster/parallel/run/detail/saved_data.h"
#include "muster/parallel/run/results.h"
#include "muster/parallel/run/run_plan.h"
#include "tests/support/state_bits.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"

namespace muster {
namespace {

using test::stateBits;
using test::thrown;

MultiLayerConfiguration smallNetwork() {
  return {.seed = 3,
          .updater = Adam{.learningRate = 0.01},
          .layers = {Dense{.units = 8, .activation = Activation::ReLU}, Output{.classes = 4}}};
}

/// Two workers, merged every second iteration, on 200 examples in batches of 16.
RunFile runIn(const test::TemporaryDirectory& directory, std::vector<std::string> sets = {}) {
  sets.insert(sets.begin(), fmt::format("training.model={}", (directory / "model.safetensors").string()));
  return RunFile::parse(R"({"format": "muster-run/1",
      "data": {"type": "mixtures", "trainExamples": 200, "testExamples": 60, "batch": 16, "seed": 5},
      "network": )" + smallNetwork().toJson() +
                            R"(,
      "training": {"workers": 2, "strategy": {"name": "averaging", "every": 2}, "epochs": 3, "devices": "cpu"},
      "listeners": {"progress": false}})",
                        sets);
}

/// Counts merges.
struct Merges final : Listener {
  void onMerge(const MergeEvent&) override { ++count; }
  int count = 0;
};

TEST_CASE("a session has the bits of the same training written by hand, and calls one's own listeners") {
  const test::TemporaryDirectory directory;
  const auto merges = std::make_shared<Merges>();
  RunSession session(runIn(directory), {merges});
  session.train();
  CHECK(session.saved());
  CHECK_FALSE(session.interrupted());

  ImageSetIterator train(gaussianMixtures(kDrawingSeed, true, 200), 16, 5);
  MultiLayerNetwork network(smallNetwork());
  Batch first;
  train.reset(0);
  REQUIRE(train.next(first));
  network.prepare(first);
  auto wrapper = ParallelWrapper::Builder(network).workers(2).averagingFrequency(2).build();
  wrapper.fit(train, 3);
  CHECK(stateBits(session.network()) == stateBits(network));
  CHECK(merges->count == 12);  // 13 batches: 7 iterations of worker 0 in an epoch, so 4 rounds
  CHECK(stateBits(*Network::load(directory / "model.safetensors")) == stateBits(network));

  ImageSetIterator test(gaussianMixtures(kDrawingSeed, false, 60), 16);
  const auto scores = session.evaluate();
  CHECK_FALSE(scores.validation.has_value());
  REQUIRE(scores.test.has_value());
  CHECK(scores.test->accuracy() == network.evaluateTask(test).accuracy());
  CHECK(scores.judged().examples() == 60);
  CHECK(thrown<InvalidArgument>([] { RunScores().judged(); }).starts_with("run: nothing was tested"));
}

TEST_CASE("a session that is stopped before its first step saves nothing, and tests nothing") {
  const test::TemporaryDirectory directory;
  std::stop_source stop;
  stop.request_stop();
  RunSession session(prepareRun(runIn(directory)), {.sink = [](std::string_view line) {
                       CHECK(line == "ended before the first step: nothing was saved");
                     }});
  session.train(stop.get_token());
  CHECK(session.interrupted());
  CHECK_FALSE(session.saved());
  CHECK(session.interruption() == "interrupted, with 0 of 3 epochs finished");
  CHECK_FALSE(session.evaluate().test.has_value());
  CHECK(directory.names().empty());
}

TEST_CASE("a session resumes a saved one to the bits of a single training") {
  const test::TemporaryDirectory directory, other;
  RunSession whole(runIn(directory));
  whole.train();
  RunSession(runIn(other, {"training.epochs=1"})).train();
  RunSession second(
      runIn(other, {fmt::format("training.resume={}", (other / "model.safetensors").string())}));
  CHECK(second.epochsBefore() == 1);
  second.train();
  CHECK(stateBits(second.network()) == stateBits(whole.network()));
}

TEST_CASE("results have the scores of the examples to validate with, also where there are no others") {
  const test::TemporaryDirectory directory;
  test::writeFile(directory / "rows.csv", [] {
    std::string rows = "size,kind\n";
    for (int i = 0; i < 60; ++i) rows += fmt::format("{},{}\n", 0.37 * i * i, i % 3 == 0 ? "a" : "b");
    return rows;
  }());
  RunSession session(RunFile::parse(
      fmt::format(R"({{"format": "muster-run/1", "data": {{"type": "csv", "train": "{}", "batch": 8,
          "validationExamples": 20}}, "network": "mlp", "training": {{"model": "{}", "devices": "cpu"}},
          "listeners": {{"progress": false}}}})",
                  (directory / "rows.csv").string(), (directory / "m.safetensors").string())));
  session.train();
  const auto scores = session.evaluate();
  CHECK_FALSE(scores.test.has_value());
  writeResults(directory / "result.json", session, scores, 1);
  const auto results = parseJson(test::readFile(directory / "result.json"));
  CHECK(results.at("validationAccuracy").as_double() == scores.validation->accuracy());
  CHECK(results.at("validationLoss").as_double() == scores.validation->loss());
  CHECK(results.at("validationF1").as_double() == scores.validation->f1());
  CHECK_FALSE(results.as_object().contains("testAccuracy"));
  CHECK(RunFile::read(directory / "result.json").toJson() == session.run().toJson());
}

TEST_CASE("the plan of a run says what its training would do, and trains nothing") {
  const test::TemporaryDirectory directory;
  auto prepared = prepareRun(runIn(directory, {"training.strategy.every=50"}));
  const auto text = planText(prepared);
  const auto has = [&](std::string_view part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has("data: Gaussian mixtures, 200 examples to train with (13 batches of 16), 0 to validate and 60 to test "
      "with\n");
  has("3 epochs\n");
  has("note: the replicas are merged at the end of each epoch only: it has 7 iterations, and "
      "training.strategy.every is 50\n");
  has("memory: cpu: 2 replicas of ");
  CHECK(prepared.network->iteration() == 0);
  CHECK(directory.names().empty());
}

TEST_CASE("what a run cannot do is refused before its data are read") {
  const test::TemporaryDirectory directory;
  const auto missing = fmt::format("training.resume={}", (directory / "none").string());
  bool called = false;
  CHECK(thrown<FileError>([&] {
          detail::prepareRun(runIn(directory, {missing}), detail::NodeOptions(),
                             [&](const PreparedRun&) { called = true; });
        }).find("cannot be resumed: there is no such file or directory") != std::string::npos);
  CHECK_FALSE(called);
  const auto seen =
      detail::prepareRun(runIn(directory), detail::NodeOptions(), [&](const PreparedRun& before) {
        called = true;
        CHECK(before.data.train == nullptr);
        CHECK(before.run.training.nodes == "none");  // settled
      });
  CHECK(called);
  CHECK(seen.data.train->examples() == 200);
  CHECK(directory.names().empty());
}

TEST_CASE(
    "a run is resumed by one that says the same in other words, and refused if it says something else") {
  const test::TemporaryDirectory directory;
  const auto checkpoints = (directory / "c").string();
  RunSession(runIn(directory, {"listeners.checkpoints=" + checkpoints})).train();
  const auto resumed = [&](std::vector<std::string> sets) {
    sets.push_back("training.resume=" + checkpoints);
    return prepareRun(runIn(directory, sets)).resumed;
  };
  // The rate as a number, a default written out, and another left out.
  const auto same = resumed({"network.updater.learningRate=0.01", "data.splitSeed=5", "network.l2=null"});
  CHECK_FALSE(same.file.empty());
  CHECK(same.changes.empty());
  CHECK(thrown<FileError>([&] {
          resumed({"network.updater.learningRate=0.02"});
        }).ends_with("it was trained with network.updater.learningRate.value 0.01 (now 0.02)"));
}

TEST_CASE(
    "a run that is refused now if it begins resumes a checkpoint of an earlier version; another is named") {
  const test::TemporaryDirectory directory;
  const std::string model = (directory / "old.safetensors").string();
  std::vector<std::string> sets{
      "data.validationExamples=20",
      "listeners.reduceOnPlateau={\"monitor\": \"accuracy\", \"minImprovement\": 0.5}"};
  auto prepared = prepareRun(runIn(directory, sets));
  auto& least = prepared.run.listeners.reduceOnPlateau->minImprovement;
  least = 1;
  const std::string refusal = "listeners.reduceOnPlateau.minImprovement must be below 1";
  CHECK(thrown<InvalidArgument>([&] { prepareRun(prepared.run); }).starts_with(refusal));
  saveModel(*prepared.network, model, detail::notesOf(prepared.run, prepared.data));
  sets.emplace_back("listeners.reduceOnPlateau.minImprovement=1");
  CHECK(thrown<InvalidArgument>([&] { runIn(directory, sets); }).starts_with(refusal));
  sets.push_back("training.resume=" + model);
  CHECK(prepareRun(runIn(directory, sets)).resumed.file == model);

  least = -1;
  saveModel(*prepared.network, model, detail::notesOf(prepared.run, prepared.data));
  CHECK(thrown<FileError>([&] {
          prepareRun(runIn(directory, sets));
        }).starts_with(model + ": has a run that cannot be read: listeners.reduceOnPlateau.minImprovement"));
}

TEST_CASE("a file without checksums of its data, as an earlier version has saved it, is resumed") {
  const test::TemporaryDirectory directory;
  const std::string model = (directory / "old.safetensors").string();
  const auto prepared = prepareRun(runIn(directory));
  auto notes = detail::notesOf(prepared.run, prepared.data);
  auto contents = prepared.data.contents;
  contents.training.unordered = "of other examples";
  notes.at("muster.data") = contents.toJson();
  saveModel(*prepared.network, model, notes);
  CHECK(thrown<FileError>([&] {
          prepareRun(runIn(directory, {"training.resume=" + model}));
        }).starts_with(model + ": was trained when mixtures had other examples, or other labels of them; "));
  REQUIRE(notes.erase("muster.data") == 1);
  saveModel(*prepared.network, model, notes);
  CHECK(prepareRun(runIn(directory, {"training.resume=" + model})).resumed.file == model);
}

}  // namespace
}  // namespace muster
