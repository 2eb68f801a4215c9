// Trainings by run files, from C++.
#include "muster/parallel/run/run_session.h"

#include <boost/json.hpp>

#include "muster/core/device/math_mode.h"
#include "muster/core/io/json_value.h"
#include "muster/core/io/model_file.h"
#include "muster/core/io/safetensors.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/gaussian_mixtures.h"
#include "muster/datasets/image_set_iterator.h"
#include "muster/datasets/source/named_images.h"
#include "muster/parallel/run/detail/preparation.h"
#include "muster/parallel/run/detail/saved_data.h"
#include "muster/parallel/run/detail/session_parts.h"
#include "muster/parallel/run/results.h"
#include "muster/parallel/run/run_plan.h"
#include "tests/support/environment.h"
#include "tests/support/log_lines.h"
#include "tests/support/on_merge.h"
#include "tests/support/state_bits.h"
#include "tests/support/test.h"

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

TEST_CASE("a session has the bits of the same training written by hand, and calls one's own listeners") {
  const test::TemporaryDirectory directory;
  int merges = 0;
  RunSession session(runIn(directory), {test::onMerge([&](const MergeEvent&) { ++merges; })});
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
  CHECK(detail::SessionParts::of(session).watchers.merged->merges == merges);
  CHECK(merges == 12);  // 13 batches: 7 iterations of worker 0 in an epoch, so 4 rounds
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

TEST_CASE("checkpoints are kept by their number and their epochs, and hold the run") {
  const test::TemporaryDirectory directory;
  const auto c = directory / "c";
  RunSession(
      runIn(directory, {"training.epochs=5", "listeners.checkpoints=" + c.string(),
                        "listeners.checkpoints.keepLast=1", "listeners.checkpoints.keepEveryEpochs=2"}))
      .train();
  std::set<std::int64_t> epochs;
  for (const auto& name : test::namesIn(c)) {
    if (!name.ends_with(".safetensors")) continue;
    epochs.insert(Network::load(c / name)->epoch());
    CHECK(detail::runIn(c / name)->training.epochs == 5);
  }
  CHECK(epochs == std::set<std::int64_t>{2, 4, 5});
  const RunSession next(runIn(directory, {"training.epochs=6", "training.resume=" + c.string()}));
  const auto resumed = next.prepared().resumed.file;
  CHECK(resumed.parent_path() == c);
  CHECK(parseJson(resultsText(next, {}, 1)).at("resumedFrom").as_string() == resumed.string());
}

TEST_CASE("results have the scores of the examples to validate with, also where there are no others") {
  const test::TemporaryDirectory directory;
  std::string rows = "size,kind\n";
  for (int i = 0; i < 60; ++i) rows += fmt::format("{},{}\n", 0.37 * i * i, i % 3 == 0 ? "a" : "b");
  test::writeFile(directory / "rows.csv", rows);
  RunSession session(
      runIn(directory,
            {fmt::format(R"(data={{"type": "csv", "train": "{}", "batch": 8, "validationExamples": 20}})",
                         (directory / "rows.csv").string()),
             "network=mlp"}));
  session.train();
  const auto scores = session.evaluate();
  CHECK_FALSE(scores.test.has_value());
  const std::string text = resultsText(session, scores, 1);
  const auto results = parseJson(text);
  CHECK(results.at("validationAccuracy").as_double() == scores.validation->accuracy());
  CHECK(results.at("validationLoss").as_double() == scores.validation->loss());
  CHECK(results.at("validationF1").as_double() == scores.validation->f1());
  CHECK_FALSE(results.as_object().contains("testAccuracy"));
  CHECK(RunFile::parse(text).toJson() == session.run().toJson());
}

TEST_CASE("the plan of a run says what its training would do, and trains nothing") {
  const test::TemporaryDirectory directory;
  const auto plan = [&](const std::vector<std::string>& sets) {
    auto prepared = prepareRun(runIn(directory, sets));
    auto text = planText(prepared);
    CHECK(prepared.network->iteration() == 0);
    return text;
  };
  const auto text = plan({"training.strategy.every=50", "training.mathMode=fp32"});
  for (const auto* const part :
       {"data: Gaussian mixtures, 200 examples to train with (13 batches of 16), 0 to validate and 60 to "
        "test "
        "with\n",
        "\nplan: 2 workers on cpu", "averaging every 50 iterations", "products in fp32", "3 epochs\n",
        "note: the replicas are merged at the end of each epoch only: it has 7 iterations, and "
        "training.strategy.every is 50\n",
        "memory: cpu: 2 replicas of ", " for a step of 16 examples"})
    CHECK_CONTAINS(text, part);
  CHECK_LACKS(plan({"training.strategy.every=7"}), "note: ");
  CHECK_LACKS(plan({"training.strategy.every=50", "training.workers=1"}), "note: ");
  CHECK(directory.names().empty());
}

TEST_CASE("a model whose directory vanishes during the training is saved in another one") {
  const test::TemporaryDirectory directory, other;
  const test::Environment environment("TMPDIR", other.path().string());
  std::filesystem::create_directory(directory / "d");
  RunSession session(
      runIn(directory, {"training.model=" + (directory / "d/net").string()}),
      {test::onMerge([&](const MergeEvent&) { std::filesystem::remove_all(directory / "d"); })});
  CHECK_CONTAINS(thrown<Error>([&] { session.train(); }), "; saved as " + (other / "net-").string());
  REQUIRE(other.names().size() == 1);
  CHECK(Network::load(other / *other.names().begin())->epoch() == 3);
}

TEST_CASE("a math mode reaches the plan and the results, or is refused if the device does not have it") {
  const test::TemporaryDirectory directory;
  for (const auto mode : {MathMode::Float32, MathMode::TensorFloat32, MathMode::BFloat16}) {
    const auto name = std::string(nameOf(mode));
    CAPTURE(name);
    const auto run = runIn(directory, {"training.mathMode=" + name});
    if (const auto why = whyNoMathMode(Device::cpu(), mode); !why.empty()) {
      CHECK_REFUSED(RunSession(run), "training.mathMode: cpu has no " + name + ": " + why);
      continue;
    }
    auto prepared = prepareRun(run);
    CHECK_CONTAINS(planText(prepared), "products in " + name);
    RunSession session(run);
    CHECK_CONTAINS(session.wrapper().plan(), "products in " + name);
    session.train();
    const auto results = parseJson(resultsText(session, session.evaluate(), 1));
    CHECK(results.at_pointer("/configuration/training/mathMode").as_string() == name);
  }
}

TEST_CASE("what a run cannot do is refused before its data are read") {
  const test::TemporaryDirectory directory;
  int called = 0;
  const auto prepare = [&](const RunFile& run) {
    return detail::prepareRun(run, detail::NodeOptions(), [&](const PreparedRun& before) {
      ++called;
      CHECK(before.data.train == nullptr);
      CHECK(before.run.training.nodes == "none");  // settled
    });
  };
  const auto missing = runIn(directory, {"training.resume=" + (directory / "none").string()});
  CHECK_CONTAINS(thrown<FileError>([&] { prepare(missing); }),
                 "cannot be resumed: there is no such file or directory");
  CHECK(called == 0);
  CHECK(prepare(runIn(directory)).data.train->examples() == 200);
  CHECK(called == 1);
  CHECK(directory.names().empty());
}

TEST_CASE("a run continues with other workers, also if they change its strategy's defaults") {
  for (const std::string strategy : {"averaging", "easgd", "bmuf"}) {  // whose momentum is 1 - 1 / workers
    CAPTURE(strategy);
    const test::TemporaryDirectory directory;
    const std::string rule = "training.strategy=" + strategy,
                      saved = "training.resume=" + (directory / "model.safetensors").string();
    RunSession(runIn(directory, {rule, "training.epochs=1"})).train();
    RunSession second(runIn(directory, {rule, saved, "training.workers=3", "training.groups=3"}));
    CHECK(second.prepared().resumed.changes == "training.groups 1 (now 3), training.workers 2 (now 3)");
    second.train();
    CHECK(second.network().epoch() == 3);
  }
}

TEST_CASE("early stopping, class weights and the best checkpoint are as the run says") {
  const test::TemporaryDirectory directory;
  const auto at = [&](const std::string& name) { return (directory / name).string(); };
  RunSession session(runIn(
      directory, {"data.validationExamples=50", "data.classWeights=1,1,2,1", "network.accumulate=2",
                  R"(listeners.earlyStopping={"monitor": "loss", "minImprovement": 1000, "patience": 1})",
                  "listeners.earlyStopping.bestFile=" + at("best.safetensors"),
                  "listeners.checkpoints=" + at("c"), "listeners.checkpoints.best=loss"}));
  CHECK(session.data().classWeights == std::vector<float>{1, 1, 2, 1});
  session.train();
  const auto result = parseJson(resultsText(session, session.evaluate(), 1));
  CHECK_CONTAINS(result.at("stopped").as_string(),
                 "the validation loss has not improved by more than 1000 for 1 epoch");
  CHECK(result.at("firstEpoch") == 1);
  CHECK(result.at("epochsFinished") == 2);
  CHECK(result.at("scoreByEpoch").as_array().size() == 2);
  CHECK(result.at("restoredEpoch") == session.network().epoch());
  CHECK(result.at("restoredEpoch") == session.earlyStopping()->best()->epoch);
  CHECK(costLine(session).starts_with("training: 2 epochs in "));
  CHECK(result.at_pointer("/configuration/network/accumulate") == 2);
  const auto bitsOf = [&](const std::string& name) { return stateBits(*Network::load(at(name))); };
  CHECK(bitsOf("best.safetensors") == bitsOf("model.safetensors"));
  CHECK(bitsOf("c/checkpoint-best.safetensors") == bitsOf("best.safetensors"));
}

TEST_CASE("a training that diverges names its learning rate, and is saved beside its model") {
  const test::TemporaryDirectory directory;
  const std::string kept = fmt::format(", and the network is saved as {} instead of {}",
                                       (directory / "model-diverged.safetensors").string(),
                                       (directory / "model.safetensors").string()),
                    rate = "network.updater.learningRate",
                    schedule = R"({"type": "cosine", "initial": 1e+30, "final": 0.0, "iterations": 9})";
  for (const auto& [set, told] :
       {std::pair(std::string(R"({"type": "fixed", "value": 1e30})"), std::string("1e+30")),
        {schedule, schedule}}) {
    // A merge after the first step: before one there is nothing to save.
    RunSession session(runIn(directory, {rate + "=" + set, "training.strategy.every=1"}));
    CHECK_CONTAINS(thrown<NonFiniteScore>([&] { session.train(); }),
                   "this was with " + rate + " " + told + kept);
  }
  CHECK(directory.names() == std::set<std::string>{"model-diverged.safetensors"});
}

TEST_CASE("a training that diverges with finite numbers replaces no model, neither the last nor the best") {
  const test::TemporaryDirectory directory;
  const auto at = [&](const std::string& name) { return (directory / name).string(); };
  std::string rows = "a,b,y\n";
  for (int i = 0; i < 40; ++i) rows += fmt::format("{},{},{}\n", i % 5 - 2, i % 3 - 1, i % 7 - 3);
  test::writeFile(at("rows.csv"), rows);
  test::writeFile(at("model.safetensors"), "the model before");
  test::writeFile(at("best.safetensors"), "the best before");
  const auto train = [&](std::vector<std::string> sets) {
    sets.insert(
        sets.begin(),
        {fmt::format(R"(data={{"type": "csv", "train": "{}", "regression": true, "batch": 4}})",
                     at("rows.csv")),
         R"(network.layers=[{"type": "output", "classes": 1, "loss": "mse", "activation": "identity"}])",
         "training.workers=1", "training.epochs=2"});
    RunSession session(runIn(directory, sets));
    return thrown<NonFiniteScore>([&] { session.train(); });
  };
  const std::string rate = R"(network.updater={"type": "sgd", "learningRate": 4})";
  const std::string diverged = "the training diverged: its loss went from ";
  CHECK_CONTAINS(train({rate}), diverged);
  // Early stopping restores the best state of this training, which diverged in its first epoch.
  CHECK_CONTAINS(train({rate, "listeners.earlyStopping.monitor=trainingScore",
                        "listeners.earlyStopping.bestFile=" + at("best.safetensors"),
                        "listeners.checkpoints=" + at("c"), "listeners.checkpoints.best=trainingScore"}),
                 diverged);
  CHECK(test::readFile(at("model.safetensors")) == "the model before");
  CHECK(test::readFile(at("best.safetensors")) == "the best before");
  CHECK_FALSE(std::filesystem::exists(at("c/checkpoint-best.safetensors")));
  CHECK(train({}) == "");
  CHECK(Network::load(at("model.safetensors"))->epoch() == 2);
}

TEST_CASE("a network's loss makes a regression of numbers in tensors, which R2 monitors") {
  const test::TemporaryDirectory directory;
  const auto at = [&](const std::string& name) { return (directory / name).string(); };
  Safetensors numbers;
  numbers.add("features", Tensor::of({0, 0, 1, 0, 0, 1, 1, 1, 2, 0, 0, 2}, {6, 2}));
  numbers.add("labels", Tensor::of({0, 2, 1, 1, 1, 2, 2, 1, 2, 0, 2, 2}, {6, 2}));  // a + b, 2 - a
  writeSafetensors(at("numbers"), numbers);
  RunSession session(runIn(
      directory,
      {fmt::format(R"(data={{"type": "safetensors", "train": "{0}", "test": "{0}", "batch": 2,
                             "validationExamples": 2}})",
                   at("numbers")),
       R"(network.layers=[{"type": "output", "classes": 2, "loss": "mse", "activation": "identity"}])",
       "training.epochs=2", "training.strategy.every=1", "listeners.testEvery=1",
       R"(listeners.reduceOnPlateau={"monitor": "r2", "patience": 100})", "listeners.checkpoints=" + at("c"),
       "listeners.checkpoints.best=r2", R"(network.updater={"type": "sgd", "learningRate": 0.1})"}));
  const test::LogLines log;
  session.train();
  log.lineWith({"epoch 1: validation R2 "});
  CHECK(std::filesystem::exists(at("c/checkpoint-best.safetensors")));
  const auto result = parseJson(resultsText(session, session.evaluate(), 1)).as_object();
  CHECK(result.at("testR2").as_double() < 1);
  CHECK(result.at("validationR2ByEpoch").as_array().size() == 2);
  for (const char* none : {"testR2ByEpoch", "testAccuracy"}) CHECK_FALSE(result.contains(none));
}

TEST_CASE(
    "a run that is refused now if it begins resumes a checkpoint of an earlier version; another is named") {
  const test::TemporaryDirectory directory;
  const std::string model = (directory / "old.safetensors").string(),
                    field = "listeners.reduceOnPlateau.minImprovement";
  std::vector<std::string> sets{"data.validationExamples=20", "listeners.reduceOnPlateau.monitor=accuracy"};
  auto prepared = prepareRun(runIn(directory, sets));
  const auto save = [&](double minImprovement) {
    prepared.run.listeners.reduceOnPlateau->minImprovement = minImprovement;
    saveModel(*prepared.network, model, detail::notesOf(prepared.run, prepared.data));
  };
  save(1);
  CHECK(thrown<InvalidArgument>([&] { prepareRun(prepared.run); }).starts_with(field + " must be below 1"));
  sets.insert(sets.end(), {field + "=1", "training.resume=" + model});
  CHECK(prepareRun(runIn(directory, sets)).resumed.file == model);
  save(-1);
  CHECK(thrown<FileError>([&] {
          prepareRun(runIn(directory, sets));
        }).starts_with(model + ": has a run that cannot be read: " + field));
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
