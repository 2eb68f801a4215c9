// The program muster, as a user runs it.
#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <csignal>

#include "muster/core/device/math_mode.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/io/safetensors.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/models/convnet.h"
#include "muster/core/nn/models/resnet18.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/generated_digits.h"
#include "muster/datasets/source/named_images.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/examples/sandbox.h"
#include "tests/support/png.h"
#include "tests/support/pseudo_terminal.h"
#include "tests/support/state_bits.h"

namespace muster {
namespace {

using test::contains;
namespace json = boost::json;

/// The program in a directory with `run.json`: 600 generated digits, two workers, one epoch.
class Muster : public test::Sandbox {
 public:
  Muster() : Sandbox(MUSTER_PROGRAM) { write("run.json", run({"example"}).out); }

  void write(const std::string& name, const std::string& text) const {
    test::writeFile(directory / name, text);
  }
  std::string read(const std::string& name) const { return test::readFile(directory / name); }

  /// Runs a command on run.json with small settings; `more` adds options.
  test::Outcome small(const std::string& command, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{command, "run.json"};
    for (const char* const set :
         {"data.trainExamples=600", "data.testExamples=200", "training.epochs=1", "training.pinThreads=false",
          "training.devices=cpu", "listeners.progress=false"})
      arguments.insert(arguments.end(), {"--set", set});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }

  /// The single line of errors of a command that must be refused.
  std::string problem(const std::vector<std::string>& arguments, int exit = 2,
                      std::source_location where = std::source_location::current()) const {
    const auto text = test::errorOf(run(arguments), exit, where);
    CHECK(std::ranges::count(text, '\n') == 1);
    return text;
  }

  /// The state of a model file that the program wrote.
  std::vector<std::byte> bitsOf(const std::string& name) const {
    const auto network = Network::load(directory / name);
    return test::stateBits(*network);
  }
};

/// A network for rows of two numbers, as in a run file.
std::string forRows(std::int64_t outputs, bool regression) {
  Output output{.classes = outputs};
  if (regression) {
    output.loss = Loss::MeanSquaredError;
    output.activation = Activation::Identity;
  }
  return MultiLayerConfiguration{.updater = Sgd{.learningRate = 0.1}, .layers = {output}}.toJson();
}

/// A run file for `rows.csv`.
std::string csvRun(std::int64_t outputs, bool regression) {
  return json::serialize(
      json::object{{"format", "muster-run/1"},
                   {"data", json::object{{"type", "csv"},
                                         {"train", "rows.csv"},
                                         {"test", "rows.csv"},
                                         {"regression", regression},
                                         {"batch", 4}}},
                   {"network", json::parse(forRows(outputs, regression))},
                   {"training", json::object{{"epochs", 40}, {"pinThreads", false}, {"devices", "cpu"}}},
                   {"listeners", json::object{{"progress", false}}}});
}

}  // namespace

TEST_CASE("muster train has the bits of the same training in C++") {
  const Muster muster;
  const auto run = test::succeeded(muster.small("train", {"--json", "result.json"}));
  CHECK(contains(run.out, "test: accuracy 0."));
  CHECK(contains(run.out, "saved: model.safetensors; loaded again, it gives the same outputs"));

  auto configuration = convnet();
  configuration.seed = 123;
  MultiLayerNetwork network(configuration);
  network.init();
  const GeneratedDigitsIterator digits(128, 600, kDrawingSeed, true);
  ImageSetIterator train(digits.set(), 128, 123);
  ParallelWrapper::Builder(network).workers(2).averagingFrequency(3).pinThreads(false).build().fit(train);
  CHECK(muster.bitsOf("model.safetensors") == test::stateBits(network));

  SUBCASE("and a file that --json wrote is a run file that gives the same results") {
    const auto again =
        test::succeeded(muster.run({"train", "result.json", "--set", "training.model=again.safetensors"}));
    CHECK(muster.bitsOf("again.safetensors") == test::stateBits(network));
  }
}

TEST_CASE("what --json writes is trained to the same bits, whatever the options were") {
  const Muster muster;
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--strategy", "synchronous"},
        {"--strategy-options", "updaterState=keep"},
        {"--math-mode", whyNoMathMode(Device::cpu(), MathMode::BFloat16).empty() ? "bf16" : "fp32"},
        {"--strategy", "diloco", "--strategy-options", "every=2,rate=0.5"}}) {
    auto arguments = more;
    arguments.insert(arguments.end(),
                     {"--model", "first.safetensors", "--set", "training.epochs=2", "--json", "result.json"});
    const auto first = test::succeeded(muster.small("train", arguments));
    const auto run =
        test::succeeded(muster.run({"train", "result.json", "--model", "again.safetensors", "--quiet"}));
    CHECK(muster.bitsOf("again.safetensors") == muster.bitsOf("first.safetensors"));
  }
}

TEST_CASE("a run continues with other workers, also if they change its strategy's defaults") {
  const Muster muster;
  for (const std::string strategy : {"averaging", "easgd"}) {
    CAPTURE(strategy);
    const auto train = [&](const std::string& epochs, std::vector<std::string> more) {
      more.insert(more.end(), {"--set", "training.epochs=" + epochs, "--set", "training.resume=" + strategy,
                               "--set", "listeners.checkpoints.directory=" + strategy, "--set",
                               R"(training.strategy={"name": ")" + strategy + R"("})"});
      return muster.small("train", more);
    };
    const auto first = test::succeeded(train("1", {}));
    CHECK(contains(first.out, "nothing to resume in " + strategy + ": the training begins\n"));
    const auto run =
        test::succeeded(train("2", {"--set", "training.workers=3", "--set", "training.groups=3"}));
    CHECK(contains(run.out,
                   "with 1 epoch finished\nit was trained with training.groups 1 (now 3), "
                   "training.workers 2 (now 3): the training continues, but"));
    CHECK(
        contains(run.err, "the checkpoint has 2 workers, this training has 3: each starts from the merged"));
  }
}

TEST_CASE("--quiet leaves out the tests between epochs, and page --out says what it wrote") {
  const Muster muster;
  const auto quiet = test::succeeded(muster.small(
      "train", {"--quiet", "--set", "listeners.testEvery=1", "--set", "training.strategy.name=slowmo"}));
  CHECK(quiet.err.empty());
#ifdef MUSTER_WITH_PAGE
  REQUIRE(muster.small("train", {"--quiet", "--set", "listeners.curves=a.curves.jsonl"}).exit == 0);
  CHECK(muster.run({"page", ".", "--out", "a.html"}).out == "written: a.html\n");
#endif
}

TEST_CASE("muster plan works after a training that has left all its files") {
  const Muster muster;
  std::vector<std::string> files{"--set", "listeners.checkpoints.directory=c",
                                 "--set", "data.validationExamples=100",
                                 "--set", "listeners.earlyStopping.monitor=loss",
                                 "--set", "listeners.earlyStopping.mode=min",
                                 "--set", "listeners.earlyStopping.bestFile=best.safetensors"};
#ifdef MUSTER_WITH_PAGE
  files.insert(files.end(), {"--set", "listeners.curves=a.curves.jsonl"});
#endif
  CHECK_FALSE(contains(muster.small("plan", files).out, "note: muster train refuses"));
  const auto run = test::succeeded(muster.small("train", files));
  const auto names = muster.directory.names();
  const auto plan = test::succeeded(muster.small("plan", files));
  CHECK(contains(plan.out,
                 "\nnote: muster train refuses this run for now: c: holds checkpoints of an earlier"));
  CHECK(muster.directory.names() == names);
  files.insert(files.end(), {"--set", "training.resume=c"});
  const auto resuming = test::succeeded(muster.small("plan", files));
  CHECK(contains(resuming.out, "\nresumes: c/checkpoint-epoch-0001.safetensors\n"));
  CHECK_FALSE(contains(resuming.out, "note: muster train refuses"));
}

TEST_CASE("the math mode is shown by plan, saved for a resume, and refused with the reason") {
  const Muster muster;
  const std::vector<std::string> fp32{"--set", "training.mathMode=fp32"};
  CHECK(contains(muster.small("plan", fp32).out, "products in fp32"));
  const auto tf32 = muster.small("plan", {"--set", "training.mathMode=tf32"});
  CHECK(tf32.exit == 2);
  CHECK(tf32.err == "muster: training.mathMode: cpu has no tf32: " +
                        whyNoMathMode(Device::cpu(), MathMode::TensorFloat32) + "\n");
  REQUIRE(muster.small("train", fp32).exit == 0);
  CHECK(contains(test::errorOf(muster.small("train", {"--set", "training.resume=model.safetensors"}), 1),
                 "it was trained with training.mathMode \"fp32\" (now \"auto\")"));
}

TEST_CASE("a training that diverges names its learning rate") {
  const Muster muster;
  const auto diverged = [&](const std::string& rate) {
    // A merge after the first step: before one there is nothing to save.
    return test::errorOf(muster.small("train", {"--set", "network.updater.learningRate=" + rate, "--set",
                                                "training.strategy.every=1"}),
                         1);
  };
  CHECK(contains(diverged(R"({"type": "fixed", "value": 1e30})"),
                 "this was with network.updater.learningRate 1e+30, and the network is saved as "
                 "model-diverged.safetensors instead of model.safetensors"));
  const std::string schedule = R"({"type": "cosine", "initial": 1e+30, "final": 0.0, "iterations": 9})";
  CHECK(contains(diverged(schedule), "this was with network.updater.learningRate " + schedule + ", and"));

  // A regression whose scores grow, but stay finite.
  std::string rows = "a,b,y\n";
  for (int i = 0; i < 40; ++i) rows += fmt::format("{},{},{}\n", i % 5 - 2, i % 3 - 1, i % 7 - 3);
  muster.write("rows.csv", rows);
  muster.write("rows.json", csvRun(1, true));
  const std::string good("\x02\0\0\0\0\0\0\0{}", 10);  // as a model begins
  muster.write("model.safetensors", good);
  CHECK(contains(test::errorOf(muster.run({"train", "rows.json", "--set", "training.epochs=2", "--set",
                                           R"(network.updater.learningRate={"type": "fixed", "value": 1})"}),
                               1),
                 "muster: the training diverged: its loss went from "));
  CHECK(muster.read("model.safetensors") == good);
  // Early stopping restores the best state of this training, which diverged in its first epoch.
  muster.write("best.safetensors", good);
  const auto restored =
      test::errorOf(muster.run({"train", "rows.json",
                                "--set", "training.epochs=2",
                                "--set", R"(network.updater.learningRate={"type": "fixed", "value": 4})",
                                "--set", "listeners.earlyStopping.monitor=trainingScore",
                                "--set", "listeners.earlyStopping.mode=min",
                                "--set", "listeners.earlyStopping.restoreBest=true",
                                "--set", "listeners.earlyStopping.bestFile=best.safetensors",
                                "--set", "listeners.checkpoints.directory=c",
                                "--set", "listeners.checkpoints.best.monitor=trainingScore",
                                "--set", "listeners.checkpoints.best.mode=min"}),
                    1);
  CHECK_MESSAGE(contains(restored, "muster: the training diverged: its loss went from "), restored);
  CHECK(muster.read("model.safetensors") == good);
  CHECK(muster.read("best.safetensors") == good);
  CHECK_FALSE(std::filesystem::exists(muster.directory / "c" / "checkpoint-best.safetensors"));
  CHECK(muster.run({"train", "rows.json"}).exit == 0);
}

TEST_CASE("a run file sets early stopping, validation data, class weights and the best checkpoint") {
  const Muster muster;
  test::succeeded(muster.small("train", {"--set",  "training.epochs=4",
                                         "--set",  "data.validationExamples=100",
                                         "--set",  "data.classWeights=[1,1,2,1,1,1,1,1,1,1]",
                                         "--set",  "network.accumulate=2",
                                         "--set",  "listeners.earlyStopping.monitor=loss",
                                         "--set",  "listeners.earlyStopping.mode=min",
                                         "--set",  "listeners.earlyStopping.minImprovement=1000",
                                         "--set",  "listeners.earlyStopping.patience=1",
                                         "--set",  "listeners.earlyStopping.bestFile=best.safetensors",
                                         "--set",  "listeners.checkpoints.directory=c",
                                         "--set",  "listeners.checkpoints.best.monitor=loss",
                                         "--set",  "listeners.checkpoints.best.mode=min",
                                         "--json", "result.json"}));
  const auto result = json::parse(muster.read("result.json"));
  CHECK(contains(std::string(result.at("stopped").as_string()),
                 "the validation loss has not improved by more than 1000 for 1 epoch"));
  CHECK(result.at("epochsFinished").as_int64() <= 2);
  CHECK(muster.bitsOf("best.safetensors") == muster.bitsOf("model.safetensors"));
  CHECK(muster.bitsOf("c/checkpoint-best.safetensors") == muster.bitsOf("best.safetensors"));
  CHECK(result.at("configuration").at("network").at("accumulate") == 2);
}

TEST_CASE("a resumption of what early stopping has ended says so, and what continues it") {
  const Muster muster;
  const auto train = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"--set",  "data.validationExamples=100",
                                       "--set",  "listeners.earlyStopping.minImprovement=0.99",
                                       "--set",  "listeners.earlyStopping.restoreBest=false",
                                       "--set",  "listeners.checkpoints.directory=c",
                                       "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::succeeded(muster.small("train", arguments)).err;
  };
  const std::vector<std::string> patient{"--set", "training.epochs=4", "--set",
                                         "listeners.earlyStopping.patience=1"};
  const std::string warning = "nothing was trained: early stopping had ended the training of ";
  CHECK(!contains(train(patient), warning));
  auto resumed = patient;
  resumed.insert(resumed.end(), {"--resume", "c"});
  const auto text = train(resumed);
  CHECK_MESSAGE(contains(text, warning), text);
  CHECK_MESSAGE(contains(text, "; a larger --set listeners.earlyStopping.patience=N continues it"), text);
  CHECK(!contains(
      train({"--set", "training.epochs=4", "--set", "listeners.earlyStopping.patience=9", "--resume", "c"}),
      warning));
}

TEST_CASE("plan and train note a period that is longer than an epoch") {
  const Muster muster;
  // Five batches of 128 are three iterations of two workers.
  const std::string note =
      "\nnote: the replicas are merged at the end of each epoch only: it has 3 iterations, and "
      "training.strategy.every is 4\n";
  for (const char* command : {"plan", "train"}) {
    CHECK(contains(muster.small(command, {"--strategy", "diloco", "--averaging-frequency", "4"}).out, note));
    CHECK_FALSE(contains(muster.small(command, {"--averaging-frequency", "3"}).out, "note: "));
    CHECK_FALSE(
        contains(muster.small(command, {"--averaging-frequency", "9", "--workers", "1"}).out, "note: "));
  }
}

TEST_CASE("muster plan describes the run, and writes nothing") {
  const Muster muster;
  const auto run = test::succeeded(muster.small("plan", {"--set", "training.workers=3"}));
  CHECK(
      contains(run.out, "600 examples to train with (5 batches of 128), 0 to validate and 200 to test with"));
  CHECK(contains(run.out, "plan: 3 workers on cpu"));
  CHECK(contains(run.out, "averaging every 3 iterations"));
  CHECK(contains(run.out, "memory: cpu: 3 replicas of 5."));
  CHECK(contains(run.out, " for a step of 128 examples"));
  CHECK(muster.directory.names() == std::set<std::string>{"run.json"});
}

TEST_CASE("muster evaluate, predict and summary work on a trained model") {
  const Muster muster;
  REQUIRE(muster.small("train", {"--json", "result.json"}).exit == 0);
  const auto evaluated = test::succeeded(muster.small("evaluate"));
  CHECK(contains(evaluated.out, "200"));
  test::succeeded(muster.small("predict", {"--out", "p.csv"}));
  const auto rows = muster.read("p.csv");
  CHECK(rows.starts_with("example,label,prediction,probability,probability of 0,"));
  CHECK(std::ranges::count(rows, '\n') == 201);
  // The share of rows whose label equals the prediction is the accuracy.
  std::istringstream lines(rows);
  std::string line;
  int right = 0;
  while (std::getline(lines, line)) {
    const auto first = line.find(','), second = line.find(',', first + 1), third = line.find(',', second + 1);
    right += line.substr(first + 1, second - first - 1) == line.substr(second + 1, third - second - 1);
  }
  CHECK(right == std::lround(200 * json::parse(muster.read("result.json")).at("testAccuracy").as_double()));
  CHECK(contains(muster.run({"summary", "model.safetensors"}).out, "431080"));
  CHECK(muster.run({"summary", "model.safetensors"}).out == muster.small("summary").out);
  const auto network = json::parse(muster.run({"summary", "model.safetensors", "--json"}).out);
  CHECK(network == json::parse(muster.read("result.json")).at("configuration").at("network"));
}

TEST_CASE("muster convert writes weights there and back, a checkpoint, a graph and a configuration") {
  const Muster muster;
  REQUIRE(muster.small("train").exit == 0);
  const auto convert = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "convert");
    const auto run = test::succeeded(muster.run(arguments));
    CHECK(contains(run.out, "written: "));
  };
  const auto tensorsOf = [&](const std::string& name) {
    std::map<std::string, Tensor> all;
    for (const auto& [tensor, values] : readSafetensors(muster.directory / name).tensors)
      all.emplace(tensor, values);
    return all;
  };
  const auto sameValues = [](const Tensor& a, const Tensor& b) {
    return a.shape() == b.shape() && std::ranges::equal(a.span<float>(), b.span<float>());
  };
  const auto model = tensorsOf("model.safetensors");

  convert({"model.safetensors", "--to", "weights", "--out", "w.safetensors", "--name", "conv1=features.0"});
  const auto weights = tensorsOf("w.safetensors");
  CHECK(weights.contains("features.0.weight"));
  for (const auto& [name, values] : weights)
    CHECK(sameValues(values, model.at(name.starts_with("features.0") ? "conv1" + name.substr(10) : name)));
  convert(
      {"w.safetensors", "--network", "run.json", "--name", "conv1=features.0", "--out", "back.safetensors"});
  const auto back = tensorsOf("back.safetensors");
  for (const auto& [name, values] : model)
    if (!name.starts_with("updater.") && !name.starts_with("counters."))
      CHECK(sameValues(values, back.at(name)));

  CHECK(std::ranges::any_of(model, [](const auto& t) { return t.first.starts_with("updater.training."); }));
  convert({"model.safetensors", "--out", "alone.safetensors"});
  const auto alone = tensorsOf("alone.safetensors");
  CHECK(std::ranges::none_of(alone, [](const auto& t) { return t.first.starts_with("updater.training."); }));
  CHECK(muster.bitsOf("alone.safetensors") == muster.bitsOf("model.safetensors"));

  convert({"alone.safetensors", "--to", "graph", "--out", "graph.safetensors"});
  const auto graph = Network::load(muster.directory / "graph.safetensors");
  const auto chain = Network::load(muster.directory / "alone.safetensors");
  const Tensor images = Tensor::zeros({2, 1, 28, 28});
  images.data<float>()[400] = 1;
  CHECK(sameValues(graph->output(images), chain->output(images)));
  CHECK(muster.bitsOf("graph.safetensors") == muster.bitsOf("alone.safetensors"));

  convert({"alone.safetensors", "--out", "network.json"});
  CHECK(muster.read("network.json") == muster.run({"summary", "alone.safetensors", "--json"}).out);
  convert({"w.safetensors", "--network", "network.json", "--name", "conv1=features.0", "--keep", "dense1",
           "--out", "kept.safetensors"});

  const auto onnx = muster.run({"convert", "alone.safetensors", "--out", "m.onnx"});
  const auto version = muster.run({"--version"}).out;
  if (version.find("onnx (") > version.find("without: ")) {
    CHECK(onnx.exit == 2);
    CHECK(contains(onnx.err, "this muster was built without the module onnx"));
  } else {
    CHECK(onnx.exit == 0);
    CHECK(contains(muster.read("m.onnx"), "conv1.weight"));
  }
}

TEST_CASE("muster convert writes models of Deeplearning4j and reads them") {
  const Muster muster;
  REQUIRE(muster.small("train").exit == 0);
  const auto there = muster.run({"convert", "model.safetensors", "--out", "model.zip"});
  const auto version = muster.run({"--version"}).out;
  if (version.find("dl4j (") > version.find("without: ")) {
    CHECK(there.exit == 2);
    CHECK(contains(there.err, "this muster was built without the module dl4j"));
    return;
  }
  CHECK(there.exit == 0);
  REQUIRE(muster.run({"convert", "model.zip", "--out", "back.safetensors"}).exit == 0);
  const auto chain = Network::load(muster.directory / "model.safetensors");
  const auto back = Network::load(muster.directory / "back.safetensors");
  const Tensor images = Tensor::zeros({2, 1, 28, 28});
  images.data<float>()[400] = 1;
  CHECK(std::ranges::equal(back->output(images).span<float>(), chain->output(images).span<float>()));
  CHECK(back->iteration() == chain->iteration());
  const auto problem = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "convert");
    const auto run = muster.run(arguments);
    CHECK(run.exit != 0);
    return run.err;
  };
  CHECK(contains(problem({"model.zip", "--out", "x.safetensors", "--shape", "1,x"}),
                 "--shape 1,x: expected up to"));
  CHECK(contains(problem({"model.zip", "--out", "x.safetensors", "--shape", "4"}),
                 "model.zip: cannot be converted: "));
  CHECK(contains(problem({"model.safetensors", "--out", "x.json", "--shape", "4"}),
                 "--shape is for models of Deeplearning4j that are read"));
  CHECK(contains(problem({"model.zip", "--network", "run.json", "--out", "x.safetensors"}),
                 "--network is for weights, and the first argument is a model of Deeplearning4j"));
}

TEST_CASE("muster convert translates a ResNet-18 to PyTorch's names and back") {
  const Muster muster;
  ComputationGraph model(resnet18(10, 3, {.imageSize = {32, 32}, .width = 4}));
  model.init();
  model.save(muster.directory / "r.safetensors");
  test::succeeded(muster.run(
      {"convert", "r.safetensors", "--to", "weights", "--name", "torchvision", "--out", "w.safetensors"}));
  const auto weights = readSafetensors(muster.directory / "w.safetensors");
  for (const char* name : {"conv1.weight", "bn1.running_var", "layer1.0.conv1.weight", "fc.bias"})
    CHECK(weights.find(name) != nullptr);
  const auto back = test::succeeded(muster.run({"convert", "w.safetensors", "--network", "r.safetensors",
                                                "--name", "torchvision", "--out", "back.safetensors"}));
  CHECK(muster.bitsOf("back.safetensors") == muster.bitsOf("r.safetensors"));
}

TEST_CASE("a model that cannot be converted gives one line with the reason") {
  const Muster muster;
  REQUIRE(muster.small("train").exit == 0);
  const std::string m = "model.safetensors", w = "w.safetensors";
  CHECK(muster.problem({"convert", m}) == "muster: --out is missing: the file to write\n");
  CHECK(contains(muster.problem({"convert", m, "--out", "m.pt"}),
                 "--out m.pt: its ending does not give the format"));
  CHECK(contains(muster.problem({"convert", m, "--to", "keras", "--out", "m"}),
                 "--to must be onnx, weights, model, graph, json or dl4j"));
  CHECK(contains(muster.problem({"convert", m, "--out", m}), "model.safetensors"));
  CHECK(contains(muster.problem({"convert", m, "--out", "x.json", "--lengths"}),
                 "--lengths works with ONNX only"));
  CHECK(contains(muster.problem({"convert", m, "--out", "x.json", "--keep", "conv1"}),
                 "--keep needs --network"));
  CHECK(
      contains(muster.problem({"convert", m, "--out", "x.json", "--name", "a=b"}), "--name is for weights"));
  CHECK(contains(muster.problem({"convert", m, "--to", "weights", "--out", w, "--name", "conv1"}),
                 "--name conv1: expected"));
  CHECK(contains(muster.problem({"convert", m, "--to", "weights", "--out", w, "--name", "convl=x"}),
                 "names the layer convl, which this network does not have"));
  CHECK(
      contains(muster.problem({"convert", m, "--network", "run.json", "--out", w}), "is a model of muster"));
  REQUIRE(muster.run({"convert", m, "--to", "weights", "--out", w}).exit == 0);
  CHECK(contains(muster.problem({"convert", w, "--out", "x.safetensors"}, 1), "holds no model of muster"));
  CHECK(contains(muster.problem({"convert", w, "--network", "run.json", "--set", "network.inputShape=[]",
                                 "--out", "x.safetensors"}),
                 "--set network.inputShape=[1,28,28] says it"));
  const auto other =
      muster.problem({"convert", w, "--network", "run.json", "--set", "network.layers[0].outChannels=7",
                      "--name", "dense1=fc", "--out", "x.safetensors"},
                     1);
  CHECK(contains(other, "it lacks: fc.weight, fc.bias"));
  CHECK(contains(other, "it has what the network has not: dense1."));
  CHECK(contains(other, "it has other tensors: conv1.weight is "));
  CHECK(muster.run({"convert", "none.safetensors", "--out", "x.onnx"}).exit == 1);
}

TEST_CASE("--watch draws in a terminal, removes its drawing at the end, and writes lines elsewhere") {
  const Muster muster;
  {
    test::PseudoTerminal terminal(80, 24);
    auto launch = muster.launch({"train", "run.json", "--watch", "--set", "training.epochs=100000", "--set",
                                 "training.pinThreads=false", "--set", "training.devices=cpu"});
    launch.environment.insert({{"TERM", "xterm"}, {"NO_COLOR", "1"}, {"LC_ALL", "C"}});
    launch.terminal = terminal.name();
    test::Program training(MUSTER_PROGRAM, launch);
    // On a loaded machine the first drawings are of one worker, which has begun before the other.
    const auto drawn = terminal.takeUpTo("worker 1  score ") + terminal.takeUpTo("m merging");
    CHECK(contains(drawn, "worker 0  score "));
    CHECK(contains(drawn, "worker 1  score "));
    for (const char* colour : {"\x1b[32m", "\x1b[33m", "\x1b[35m", "\x1b[36m"})
      CHECK_FALSE(contains(drawn, colour));
    terminal.resize(30, 24);
    training.signal(SIGINT);
    CHECK(training.wait().exit == 130);
    const auto rest = terminal.take();
    const auto last = rest.rfind("\r\x1b[J");
    REQUIRE(last != std::string::npos);
    CAPTURE(rest.substr(last));
    CHECK_FALSE(contains(rest.substr(last), "worker "));  // an epoch's line may follow, with its score
  }
  const auto plain = test::succeeded(muster.small("train", {"--watch", "--set", "listeners.progress=false"}));
  CHECK(contains(plain.err, "epoch 1/1: score "));
  CHECK_FALSE(contains(plain.err, "\x1b"));
  CHECK(contains(muster.small("train", {"--watch", "--quiet"}).err, "--watch shows what --quiet leaves out"));
}

TEST_CASE("an error is in lines of the terminal's width, without breaking words, and elsewhere in one") {
  const Muster muster;
  const std::vector<std::string> arguments{"train", "run.json", "--set", "training.strategy.name=averagin"};
  const auto plain = muster.run(arguments);
  CHECK(std::ranges::count(plain.err, '\n') == 1);
  REQUIRE(plain.err.size() > 100);
  test::PseudoTerminal terminal(60, 24);
  auto launch = muster.launch(arguments);
  launch.terminal = terminal.name();
  CHECK(test::runProgram(MUSTER_PROGRAM, launch).exit == 2);
  const auto text = terminal.take();
  std::string joined;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    REQUIRE(line.ends_with('\r'));  // the terminal's
    line.pop_back();
    CHECK(line.size() <= 60);
    joined += joined.empty() ? line : line.substr(1);  // indented by two, one of them the space between words
  }
  CHECK(joined + "\n" == plain.err);
}

TEST_CASE("--version prints the version, with its libraries and the optional modules left out") {
  const auto text = Muster().run({"--version"}).out;
  CHECK(text.starts_with("muster 0."));
  for (const char* name : {"\ncompiler: ", "oneDNN ", "Boost ", "fmt ", "OpenSSL ", "zlib "}) {
    CAPTURE(name);
    const auto at = text.find(name);
    REQUIRE(at != std::string::npos);
    CHECK(std::isalnum(static_cast<unsigned char>(text[at + std::string(name).size()])) != 0);
  }
  for (const char* module :
       {"CUDA", "nodes (", "dl4j (", "gloo (", "onnx (", "page (", "tensorboard (", "torch ("})
    CHECK(contains(text, module));
  CHECK(contains(text, "\nGPUs: "));
}

TEST_CASE("fields of a module that was not built are refused before the data are read") {
  const Muster muster;
  muster.write("csv.json", csvRun(2, false));  // its data do not exist
  const auto version = muster.run({"--version"}).out;
  const auto refused = [&](const std::string& module, const std::string& field, const std::string& why) {
    if (version.find(module + " (") < version.find("without: ")) return;  // it is built
    CAPTURE(field);
    for (const char* command : {"train", "plan"}) {
      const auto run = muster.run({command, "csv.json", "--set", field});
      CHECK(run.exit == 2);
      CHECK(run.out.empty());
      CHECK_MESSAGE(contains(run.err, why), run.err);
    }
  };
  refused("page", "listeners.page=true", "listeners.page: this program was built without the page, which ");
  refused("page", "listeners.curves=a.curves.jsonl", "listeners.curves: this program was built without the ");
  refused(
      "tensorboard", "listeners.tensorBoard=d",
      "listeners.tensorBoard: this program was built without TensorBoard, which needs protobuf; install ");
  refused("nodes", "training.nodes=mpi", "training.nodes: this muster was built without MPI; install ");
  CHECK(muster.directory.names() == std::set<std::string>{"csv.json", "run.json"});
}

TEST_CASE("CSV files are trained with class names, predicted, and refused with the row that is wrong") {
  const Muster muster;
  std::string rows = "size,speed,kind\n";
  for (int i = 0; i < 20; ++i) rows += i % 2 == 0 ? "1,-1,cat\n" : "-1,1,\"dog, big\"\n";
  muster.write("rows.csv", rows);
  muster.write("csv.json", csvRun(2, false));
  const auto run = test::succeeded(muster.run({"train", "csv.json"}));
  CHECK(contains(run.out, "test: accuracy 1.0000"));
  const auto predicted = muster.run({"predict", "csv.json"}).out;
  CHECK(contains(predicted, "\n0,cat,cat,0.9"));
  CHECK(contains(predicted, "\n1,\"dog, big\",\"dog, big\",0.9"));
  muster.write("rows.csv", rows + "1,2\n");
  CHECK(test::errorOf(muster.run({"train", "csv.json"}), 1) ==
        "muster: rows.csv: line 22: 2 fields, where the first line has 3\n");
  muster.write("rows.csv", rows + "1,2,bird\n1,3,bird\n");
  for (const char* command : {"train", "plan"}) {
    CHECK(test::errorOf(muster.run({command, "csv.json"})) ==
          "muster: network and data do not fit: rows.csv has 3 classes (bird, cat, \"dog, big\"), and the "
          "network's output has 2\n");
  }
  auto five = json::parse(csvRun(5, false)).as_object();
  muster.write("five.json", json::serialize(five));
  CHECK(test::errorOf(muster.run({"train", "five.json"})) ==
        "muster: network and data do not fit: rows.csv has 3 classes (bird, cat, \"dog, big\"), and the "
        "network's "
        "output has 5\n");
  muster.write("rows.csv", "a,b,y\n1,0,3\n0,1,-1\n1,1,2\n0,0,0\n");
  muster.write("numbers.json", csvRun(1, true));
  const auto numbers = test::succeeded(muster.run({"train", "numbers.json", "--set", "training.epochs=400"}));
  CHECK(contains(numbers.out, "test: R2 1.0000, RMSE "));
  const auto tested = muster.run({"evaluate", "numbers.json"}).out;
  CHECK_MESSAGE(contains(tested, "4 examples, 1 column: R2 1.0000, "), tested);
  CHECK_MESSAGE(contains(tested, ", in the column's own units\n"), tested);
  CHECK_MESSAGE(contains(tested, "\n         y "), tested);
  CHECK(muster.run({"train", "numbers.json", "--set", "network.layers[0].classes=3"}).exit == 2);
}

TEST_CASE("muster reads IDX files and safetensors") {
  const Muster muster;
  Safetensors rows;
  Tensor labels = Tensor::empty({8}, DType::Int64);
  for (std::int64_t i = 0; i < 8; ++i) labels.data<std::int64_t>()[i] = i % 2;
  rows.add("features", Tensor::zeros({8, 3}));
  rows.add("labels", labels);
  writeSafetensors(muster.directory / "rows.safetensors", rows);
  auto file = json::parse(csvRun(2, false)).as_object();
  file["data"] = json::object{{"type", "safetensors"}, {"train", "rows.safetensors"}, {"batch", 3}};
  muster.write("tensors.json", json::serialize(file));
  const auto run = test::succeeded(muster.run({"train", "tensors.json"}));
  CHECK(contains(run.out, "8 examples to train with, from rows.safetensors"));

  // Targets that are numbers: the network's loss makes it a regression.
  Safetensors numbers;
  Tensor features = Tensor::empty({12, 2}), targets = Tensor::empty({12, 2});
  for (std::int64_t i = 0; i < 12; ++i) {
    const auto a = static_cast<float>(i % 4) / 4, b = static_cast<float>(i % 3) / 3;
    std::ranges::copy(std::array{a, b}, features.data<float>() + 2 * i);
    std::ranges::copy(std::array{a + b, 2.04f - a}, targets.data<float>() + 2 * i);
  }
  numbers.add("features", features);
  numbers.add("labels", targets);
  writeSafetensors(muster.directory / "numbers.safetensors", numbers);
  auto regression = json::parse(csvRun(2, true)).as_object();
  regression["data"] = json::object{{"type", "safetensors"},
                                    {"train", "numbers.safetensors"},
                                    {"test", "numbers.safetensors"},
                                    {"batch", 3}};
  muster.write("numbers.json", json::serialize(regression));
  const auto trained = test::succeeded(muster.run({"train",  "numbers.json",
                                                   "--json", "result.json",
                                                   "--set",  "training.epochs=400",
                                                   "--set",  "training.workers=2",
                                                   "--set",  "data.validationExamples=2",
                                                   "--set",  "listeners.testEvery=100",
                                                   "--set",  "listeners.earlyStopping.monitor=loss",
                                                   "--set",  "listeners.earlyStopping.patience=50",
                                                   "--set",  "listeners.reduceOnPlateau.monitor=r2",
                                                   "--set",  "listeners.checkpoints.directory=c",
                                                   "--set",  "listeners.checkpoints.best.monitor=r2"}));
  CHECK(contains(trained.out + trained.err, "epoch 100: validation R2 "));
  CHECK(contains(trained.out, "test: R2 "));
  CHECK(std::filesystem::exists(muster.directory / "c/checkpoint-best.safetensors"));
  const auto result = json::parse(muster.read("result.json")).as_object();
  CHECK(result.at("testR2").as_double() > 0.99);
  CHECK(result.at("testLoss").as_double() < 1e-3);
  CHECK(result.at("validationR2ByEpoch").as_array().size() == 4);
  CHECK_FALSE(result.contains("testR2ByEpoch"));
  CHECK_FALSE(result.contains("testAccuracy"));

  const std::string images(
      "\0\0\x08\x03\0\0\0\x04\0\0\0\x01\0\0\0\x02"
      "abcdefgh",
      24);
  muster.write("images.idx", images);
  muster.write("labels.idx", std::string("\0\0\x08\x01\0\0\0\x04\0\1\2\1", 12));
  file["data"] = json::object{
      {"type", "idx"}, {"trainImages", "images.idx"}, {"trainLabels", "labels.idx"}, {"classes", 3}};
  muster.write("idx.json", json::serialize(file));
  const auto idx = test::succeeded(muster.run({"plan", "idx.json", "--set", "network.layers[0].classes=3"}));
  CHECK(contains(idx.out, "4 examples to train with"));
}

TEST_CASE("muster trains with CIFAR-10's files and a folder of PNGs, and predicts class names") {
  const Muster muster;
  auto file = json::parse(csvRun(10, false)).as_object();
  std::filesystem::create_directory(muster.directory / "cifar");
  for (const std::string name :
       {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"}) {
    muster.write("cifar/" + name + ".bin", "");
    std::filesystem::resize_file(muster.directory / "cifar" / (name + ".bin"), 10000 * 3073);
  }  // zeros: black images of class 0, an airplane
  file["data"] = json::object{
      {"type", "cifar10"}, {"directory", "cifar"}, {"trainExamples", 16}, {"testExamples", 8}, {"batch", 4}};
  muster.write("cifar.json", json::serialize(file));
  const auto cifar = test::succeeded(muster.run({"train", "cifar.json"}));
  CHECK(contains(cifar.out, "16 examples to train with"));
  CHECK(contains(cifar.out, "test: accuracy 1.0000"));
  CHECK(contains(muster.run({"predict", "cifar.json"}).out, "\n0,airplane,airplane,"));

  for (const std::string part : {"train", "test"})
    for (const std::string name : {"dark", "light"})
      for (const std::string number : {"1", "2", "3"}) {
        const auto path = muster.directory / part / name / (number + ".png");
        std::filesystem::create_directories(path.parent_path());
        test::writePng(path, std::vector<std::uint8_t>(4 * 6, name == "dark" ? 10 : 240), 6, 4);
      }
  file["network"] = json::parse(forRows(2, false));
  file["data"] =
      json::object{{"type", "images"}, {"train", "train"}, {"test", "test"}, {"grey", true}, {"batch", 2}};
  muster.write("png.json", json::serialize(file));
  const auto png = test::succeeded(muster.run({"train", "png.json"}));
  CHECK(contains(png.out, "test: accuracy 1.0000"));
  CHECK(contains(muster.run({"predict", "png.json"}).out, "\n5,light,light,"));
  const auto picture = muster.read("train/dark/1.png");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"train", "png.json", "--set", "training.model=train/dark/1.png"},
        {"train", "png.json", "--json", "train/dark/1.png"},
        {"predict", "png.json", "--out", "train/dark/1.png"}}) {
    CHECK(contains(test::errorOf(muster.run(arguments)),
                   "train/dark/1.png, a picture in the directory of data.train, train: "));
  }
  CHECK(muster.read("train/dark/1.png") == picture);
  muster.write("train/light/4.png", "no picture");
  CHECK(contains(test::errorOf(muster.run({"train", "png.json"}), 1), "train/light/4.png"));
}

TEST_CASE("a folder of photographs of several sizes is learned; its model file alone predicts new ones") {
  const Muster muster;
  const auto draw = [&](const std::string& path, int value, int width, int height) {
    std::filesystem::create_directories((muster.directory / path).parent_path());
    test::writePng(
        muster.directory / path,
        std::vector<std::uint8_t>(static_cast<std::size_t>(width * height), static_cast<std::uint8_t>(value)),
        width, height);
  };
  for (int i = 0; i < 10; ++i) {
    draw(fmt::format("photos/dark/{}.png", i), 10 + 5 * i, 20 + i, 30 - i);
    draw(fmt::format("photos/light/{}.Png", i), 250 - 5 * i, 40 - i, 10 + i);
  }
  draw("new/deep/snow.png", 240, 50, 9);
  draw("new/night.png", 30, 9, 50);
  muster.write("photos/light/notes.txt", "x");
  const auto example = test::succeeded(muster.run({"example", "photos"}));
  CHECK(contains(example.err, "20 pictures read, and left out 1 .txt"));
  const auto run = json::parse(example.out).as_object();
  CHECK(run.at("data").at("height") == 30);
  CHECK(run.at("data").at("width") == 20);
  CHECK(run.at("data").at("validationExamples") == 4);
  muster.write("run.json", example.out);
  const auto trained =
      test::succeeded(muster.run({"train", "run.json", "--set", "training.epochs=10", "--set",
                                  "training.devices=cpu", "--set", "training.pinThreads=false"}));
  CHECK(contains(trained.out + trained.err, "accuracy 1.0000, F1 1.0000 on 4 examples"));
  draw("photos/dark/0.png", 11, 20, 30);
  CHECK(contains(test::errorOf(muster.run({"evaluate", "run.json", "--on", "validation"}), 1),
                 "was trained when photos had other examples, or other labels of them, or another libjpeg "
                 "decoded them; "));
  draw("photos/dark/0.png", 10, 20, 30);
  std::filesystem::rename(muster.directory / "photos/dark", muster.directory / "photos/night");
  CHECK(contains(test::errorOf(muster.run({"evaluate", "run.json", "--on", "train"})),
                 "class 0 is light in photos, and dark in the model"));
  test::succeeded(
      muster.run({"train", "run.json", "--set", "training.epochs=1", "--set", "training.devices=cpu", "--set",
                  "training.pinThreads=false", "--set", "training.initialModel=photos.safetensors", "--set",
                  "training.model=second.safetensors"}));
  CHECK(muster.run({"predict", "second.safetensors", "new/night.png"})
            .out.starts_with("file,prediction,probability,probability of light,probability of night\n"));
  std::filesystem::remove_all(muster.directory / "photos");
  std::filesystem::remove(muster.directory / "run.json");

  const std::string header = "file,prediction,probability,probability of dark,probability of light\n";
  const auto one = muster.run({"predict", "photos.safetensors", "new/night.png"});
  CAPTURE(one.err);
  CHECK(one.out.starts_with(header + "night.png,dark,0."));
  const auto all = test::succeeded(muster.run({"predict", "photos.safetensors", "new", "--out", "all.csv"}));
  const auto text = muster.read("all.csv");
  CHECK(text.starts_with(header + "deep/snow.png,light,0."));
  CHECK(contains(text, "\nnight.png,dark,0."));
  CHECK(muster.run({"predict", "photos.safetensors", "--out", "-", "new"}).out == text);
  CHECK(all.err.empty());
  muster.write("new/deep/half.png", muster.read("new/deep/snow.png").substr(0, 40));
  muster.write("new/a.webp", "x");
  const auto most = muster.run({"predict", "photos.safetensors", "new"});
  CHECK(most.exit == 1);
  CHECK(most.out == text);
  CHECK(contains(most.err, "new: 3 pictures read, and left out 1 .webp"));
  CHECK(contains(most.err, "new/deep/half.png: "));
  CHECK(contains(most.err, "muster: new: 1 picture cannot be read; the other rows are written\n"));
  std::filesystem::remove(muster.directory / "new/deep/half.png");
  std::filesystem::remove(muster.directory / "new/a.webp");

  CHECK(contains(muster.problem({"predict", "photos.safetensors"}),
                 "a picture or a folder of pictures, as in"));
  CHECK(contains(muster.problem({"predict", "photos.safetensors", "new", "--keep", "id"}),
                 "--keep is for a table, and this model predicts pictures"));
  CHECK(contains(muster.problem({"predict", "photos.safetensors", "new", "--out", "new/night.png"}),
                 "a picture in the directory of the pictures, new"));
  muster.write("rows.csv", "a,b\n1,2\n");
  CHECK(contains(muster.problem({"predict", "photos.safetensors", "rows.csv"}),
                 "photos.safetensors is a model of pictures, and rows.csv is a table"));
  CHECK(contains(muster.problem({"predict", "photos.safetensors", "photos.safetensors"}, 1),
                 "is neither a PNG nor a JPEG file"));
  muster.write("empty.jpg", "");
  CHECK(contains(muster.problem({"predict", "photos.safetensors", "empty.jpg"}, 1),
                 "empty.jpg: is empty, and no picture"));
}

TEST_CASE("muster example writes a run file for a newcomer's data, and mistakes get advice") {
  const Muster muster;
  std::string rows = "size;speed;kind\n";
  for (int i = 0; i < 40; ++i) rows += i % 2 == 0 ? "1000;-1;cat\n" : "2000;1;dog\n";
  muster.write("rows.csv", rows);
  const auto example = test::succeeded(muster.run({"example", "rows.csv", "--separator", ";"}));
  muster.write("own.json", example.out);
  const auto trained =
      test::succeeded(muster.run({"train", "own.json", "--set", "training.devices=cpu", "--set",
                                  "training.pinThreads=false", "--set", "data.test=rows.csv"}));
  CHECK(contains(trained.out, "test: accuracy 1.0000"));
  const auto evaluated = muster.run({"evaluate", "own.json", "--on", "train"});
  CAPTURE(evaluated.out);
  CHECK(contains(evaluated.out, "\n     0 cat         17 "));
  CHECK(contains(evaluated.out, "\n     1 dog         17 "));
  CHECK(contains(evaluated.out, "\n     0 cat 17  0\n     1 dog  0 17\n"));
  const auto numbers = test::succeeded(
      muster.run({"example", "rows.csv", "--separator", ";", "--label", "size", "--regression"}));
  CHECK(contains(numbers.out, "\"separator\": \";\""));

  for (const std::string name : {"a", "b"}) {
    const auto path = muster.directory / "pictures" / name / "1.png";
    std::filesystem::create_directories(path.parent_path());
    test::writePng(path, std::vector<std::uint8_t>(4 * 6, name == "a" ? 10 : 240), 6, 4);
  }
  muster.write("pictures.json", muster.run({"example", "pictures", "--grey"}).out);
  CHECK(contains(muster.run({"plan", "pictures.json", "--set", "training.devices=cpu"}).out,
                 "images, 2 examples to train with (1 batch of 2)"));

  CHECK(contains(muster.problem({"train", "rows.csv"}), "muster example rows.csv prints one for it"));
  CHECK(contains(muster.problem({"evaluate", "rows.safetensors"}), "is a model file; give the run file"));
  CHECK(muster.problem({"evaluate", "own.json", "--seed", "3"}) ==
        "muster: there is no option --seed: use --set data.seed=N --set network.seed=N\n");
  CHECK(contains(muster.problem({"train", "own.json", "--layers", "2"}), "as in --set training.workers=4"));
  CHECK(contains(muster.problem({"evaluate", "own.json", "--workers", "2"}), "as in --set data.batch=100"));
  for (const std::string option : {"--epochs", "--mode", "--jsn"}) {
    const auto refused = muster.problem({"strategies", option, "3"});
    CHECK(refused.starts_with("muster: there is no option " + option + ";"));
    CHECK_FALSE(contains(refused, "--set"));
  }
  CHECK(contains(
      muster.problem({"evaluate", "own.json"}),
      "data.test is empty); --on validation takes the examples held out from the training, --on train "
      "takes the examples that it was trained with"));
  CHECK(contains(muster.problem({"evaluate", "own.json", "--set", "data.validationExamples=0"}),
                 "data.test is empty); --on train takes"));
  CHECK(muster.run({"evaluate", "own.json", "rows.safetensors", "--on", "train"}).out == evaluated.out);
  // A model with another network than the run file's.
  REQUIRE(muster
              .run({"train", "own.json", "--set", "network=mlp", "--model", "other.safetensors", "--epochs",
                    "30", "--device", "cpu", "--pin-threads", "false"})
              .exit == 0);
  const auto other =
      test::succeeded(muster.run({"evaluate", "own.json", "other.safetensors", "--on", "train"}));
  CHECK(contains(other.out, "\n     0 cat         17 "));
  CHECK(contains(muster.problem({"evaluate", "own.json", "rows.csv"}),
                 "unexpected argument rows.csv: after a run file"));
  CHECK(contains(muster.problem({"evaluate", "own.json", "rows.safetensors", "--model", "rows.safetensors"}),
                 "--model and rows.safetensors are two models"));
  const auto misfit =
      muster.problem({"example", "rows.csv", "--separator", ";", "--label", "kind", "--network", "convnet"});
  CHECK_MESSAGE(
      contains(misfit, "network: convnet is for pictures [C, H, W] of classes, and an example is [2]"),
      misfit);
  CHECK(contains(muster.problem({"plan", "own.json", "--batch", "60", "--set", "data.dropLast=true"}),
                 "data.dropLast leaves out a batch that is not full, and data.batch 60 is larger than the 34 "
                 "examples to train with, so none is left"));
  CHECK(contains(muster.run({"plan", "own.json", "--set", "data.columns=size,speed"}).out,
                 "34 examples to train with (17 batches of 2), 6 to validate and 0 to test with"));
  CHECK(contains(muster.problem({"--versoin"}), "the nearest is --version"));
  CHECK(contains(muster.problem({"example", "--grey"}), "--grey is for a directory of images"));
  CHECK(muster.problem({"example", "churn.json"}) ==
        "muster: churn.json is named like a run file, and muster example needs a table or a directory of "
        "images, for which it prints a run file: muster example TABLE.csv > run.json\n");
  CHECK(contains(muster.problem({"example", "x/churn.safetensors"}), "is named like a model, and "));
  CHECK(muster.run({"help", "train"}).out == muster.run({"train", "--help"}).out);
  CHECK(contains(muster
                     .run({"plan", "run.json", "--set", "data.train=rows.csv", "--set", "data.separator=;",
                           "--set", "data.type=csv"})
                     .err,
                 "network and data do not fit"));
}

TEST_CASE("muster shows the runs of a directory side by side, to browsers and as one file") {
  const Muster muster;
#ifdef MUSTER_WITH_PAGE
  for (const char* seed : {"1", "2"}) {
    const auto run = test::succeeded(muster.small(
        "train",
        {"--set", std::string("data.seed=") + seed, "--set",
         std::string("listeners.curves=runs/seed-") + seed + ".curves.jsonl", "--set",
         "listeners.group=averaging", "--set", "listeners.testEvery=1", "--set", "listeners.page=true"}));
    CHECK(contains(run.out, "page: http://127.0.0.1:"));
  }
  CHECK(muster.run({"page", "runs", "--out", "runs.html"}).exit == 0);
  CHECK(muster
            .small("train", {"--set", "network.updater.learningRate.value=1e30", "--set",
                             "listeners.curves=diverged.curves.jsonl"})
            .exit == 1);
  CHECK(contains(muster.read("diverged.curves.jsonl"), "the score became nan"));
  const auto page = muster.read("runs.html");
  for (const char* part :
       {"\"run\":\"seed-1\"", "\"run\":\"seed-2\"", "\"group\":\"averaging\"", "test/accuracy"})
    CHECK_MESSAGE(contains(page, part), part);

  test::Program server(MUSTER_PROGRAM, {.directory = muster.directory.path(), .arguments = {"page", "runs"}});
  CHECK(server.awaitText("ssh -L"));
  server.signal(SIGINT);
  const auto served = test::succeeded(server.wait());
  CHECK(served.out.starts_with("2 runs in runs; new ones are shown as they come. Ctrl-C ends the page.\n"));

  CHECK(contains(muster.run({"page", "missing"}).err, "missing: is no directory"));
  CHECK(contains(muster.run({"page", "runs", "--out", "runs/a.curves.jsonl"}).err,
                 "--out: runs/a.curves.jsonl is named like a run, which would be replaced"));
  std::filesystem::rename(muster.directory / "runs/seed-1.curves.jsonl", muster.directory / "elsewhere");
  std::filesystem::create_symlink("../elsewhere", muster.directory / "runs/linked.curves.jsonl");
  const auto run = muster.read("elsewhere");
  CHECK(contains(muster.run({"page", "runs", "--out", "elsewhere"}).err,
                 "the run runs/linked.curves.jsonl and --out are the same file"));
  CHECK(muster.read("elsewhere") == run);
  std::filesystem::create_directory(muster.directory / "by link");
  std::filesystem::create_directory_symlink("../runs", muster.directory / "by link/linked");
  REQUIRE(muster.run({"page", "by link", "--out", "linked.html"}).exit == 0);
  CHECK(contains(muster.read("linked.html"), "\"run\":\"linked/seed-2\""));
  std::filesystem::create_directory(muster.directory / "empty");
  CHECK(contains(muster.run({"page", "empty", "--out", "x.html"}).err,
                 "empty has no runs: files whose names end in"));
  CHECK(contains(muster.run({"page", "runs", "--out", "x.html", "--port", "1"}).err,
                 "--port needs a page that is served"));
  CHECK(contains(muster.small("train", {"--set", "listeners.curves=a.json"}).err, "ends in .curves.jsonl"));
#else
  CHECK(contains(muster.run({"page", "."}).err, "this program was built without the page, which needs"));
#endif
}

TEST_CASE("completion for bash knows the commands, the options of each, and files") {
  const Muster muster;
  const auto completed = [&](const std::string& words, int at) {
    auto launch =
        muster.launch({"-c", "source " MUSTER_COMPLETION "; COMP_WORDS=(" + words +
                                 "); COMP_CWORD=" + std::to_string(at) + "; _muster; echo ${COMPREPLY[@]}"});
    const char* const path = std::getenv("PATH");
    launch.environment["PATH"] =
        std::filesystem::path(MUSTER_PROGRAM).parent_path().string() + ":" + (path ? path : "/usr/bin:/bin");
    return test::runProgram("/bin/bash", launch).out;
  };
  CHECK(completed("muster p", 1) == "plan predict page\n");
  CHECK(completed("muster --v", 1) == "--version\n");
  CHECK(completed("muster train run.json --q", 3) == "--quiet\n");
  CHECK(completed("muster evaluate --", 2) == "--set --model --on --json --help\n");
  CHECK(completed("muster train ru", 2) == "run.json\n");
}

TEST_CASE("muster example writes a run file that trains, whatever the number of rows is") {
  const Muster muster;
  for (const int rows : {2, 3, 5, 9, 33}) {
    CAPTURE(rows);
    std::string text = "a,b,kind\n";
    for (int i = 0; i < rows; ++i) text += i % 2 == 0 ? "1,-1,cat\n" : "-1,1,dog\n";
    muster.write("rows.csv", text);
    muster.write("rows.json", muster.run({"example", "rows.csv"}).out);
    const auto run = muster.run({"train", "rows.json", "--quiet", "--set", "training.devices=cpu", "--set",
                                 "training.pinThreads=false", "--set", "training.epochs=1"});
    CHECK(run.err == "");
    CHECK(run.exit == 0);
  }
  muster.write("rows.csv", "a,kind\n1,cat\n2,cat\n");
  CHECK(contains(muster.run({"example", "rows.csv"}).err, "rows.csv: has a single class"));
  muster.write("rows.csv", "a,y\n1,2\n");
  CHECK(contains(muster.run({"example", "rows.csv", "--regression"}).err, "rows.csv: has one example"));
}

TEST_CASE("muster plan refuses names that train refuses, and paths that are too long") {
  const Muster muster;
  const auto same = muster.small("plan", {"--set", "training.model=run.json"});
  CHECK(same.exit == 2);
  CHECK(contains(same.err, "the run file and training.model are the same file"));
  const auto checkpoint = muster.small("plan", {"--set", "listeners.checkpoints.directory=c", "--set",
                                                "training.model=c/checkpoint-epoch-0001.safetensors"});
  CHECK(checkpoint.exit == 2);
  CHECK(contains(checkpoint.err,
                 "training.model is c/checkpoint-epoch-0001.safetensors, a name of checkpoints"));
  const std::string longName(1000, 'a');
  for (const char* field : {"training.resume", "training.initialModel"})
    CHECK(contains(muster.small("plan", {"--set", field + ("=" + longName)}).err, "File name too long"));
}

TEST_CASE("mistakes give one line, with the exit status of an invalid option") {
  const Muster muster;
  CHECK(muster.problem({"trian", "run.json"}) ==
        "muster: there is no command \"trian\"; the nearest is train; --help lists all\n");
  CHECK(muster.problem({"train"}) ==
        "muster: muster train needs an argument, a run file such as run.json; --help says more\n");
  CHECK(muster.problem({"train", "run.json", "--set", "training.wrokers=2"})
            .starts_with("muster: --set training.wrokers=2: training.wrokers: there is no such field; the "
                         "nearest is workers"));
  CHECK(contains(muster.problem({"train", "run.json", "other.json"}), "unexpected argument"));
  CHECK(contains(muster.problem({"train", "run.json", "--set", "data.classWeights=[1,1]", "--set",
                                 "data.trainExamples=100"}),
                 "class weights: there are weights for classes 0 to 1"));
  CHECK(muster.problem({"train", "run.json", "--set", "network.layers[0].kernel=[99,99]"}) != "");
  CHECK(contains(muster.problem({"train", "run.json", "--set", "data.validationExamples=6000"}),
                 "data.validationExamples is 6000, and there are 6000 examples"));
  if (contains(muster.run({"--version"}).out, "nodes (no MPI was found)"))
    CHECK(contains(muster.problem({"train", "run.json", "--set", "training.nodes=mpi"}),
                   "was built without MPI"));
  CHECK(muster.run({"train", "none.json"}).exit == 1);
  const std::string longName(256, 'x');
  CHECK(test::errorOf(muster.run({"example", longName}), 1) ==
        "muster: " + longName + ": cannot be read: File name too long\n");
  CHECK(muster.run({}).exit == 2);
}

TEST_CASE("a command that prints its result fails if standard output is closed") {
  const Muster muster;
  for (const char* command : {"example", "schema", "strategies", "plan", "summary"}) {
    CAPTURE(command);
    std::vector<std::string> arguments{"-c", "\"$@\" >&-", "sh", MUSTER_PROGRAM, command};
    if (command == std::string("plan") || command == std::string("summary"))
      arguments.emplace_back("run.json");
    CHECK(contains(test::errorOf(test::runProgram("/bin/sh", muster.launch(arguments)), 1),
                   "muster: standard output could not be written: it is closed\n"));
  }
}

TEST_CASE("every command has a help text, and muster prints the schema") {
  const Muster muster;
  const auto help = test::succeeded(muster.run({"--help"}));
  for (const char* command : {"train", "plan", "evaluate", "predict", "summary", "convert", "compare",
                              "strategies", "example", "schema"}) {
    CAPTURE(command);
    CHECK(contains(help.out, std::string("\n  ") + command + " "));
    const auto run = test::succeeded(muster.run({command, "--help"}));
    CHECK(run.out.starts_with(std::string("Usage: muster ") + command + " "));
    CHECK(contains(run.out, "--help"));
    CHECK(muster.run({command, "-h"}).out == run.out);
  }
  CHECK(contains(muster.run({"compare", "--help"}).out, "\n  muster compare run.json --arm averaging "));
  CHECK(json::parse(muster.run({"schema"}).out).at("properties").at("training").is_object());
}

TEST_CASE("options may come before the file, and an empty or a wrong first argument is named") {
  const Muster muster;
  const auto usual = test::succeeded(muster.run({"plan", "run.json", "--set", "training.workers=3"}));
  CHECK(muster.run({"plan", "--set", "training.workers=3", "run.json"}).out == usual.out);
  CHECK(muster.run({"summary", "--json", "run.json"}).out ==
        muster.run({"summary", "run.json", "--json"}).out);
  CHECK(contains(muster.run({"plan", "--set", "training.workers=3", "run.json", "more"}).err,
                 "unexpected argument \"more\""));
  CHECK(contains(muster.run({"schema", "run.json"}).err, "unexpected argument \"run.json\""));
  CHECK(contains(muster.run({"plan", "--set", "training.workers=3"}).err, "muster plan needs an argument"));
  for (const char* command : {"train", "example", "page"})
    CHECK(muster.run({command, ""}).err == std::string("muster: muster ") + command +
                                               ": the first argument is empty, perhaps an unset variable\n");
  CHECK(
      contains(muster.run({"run.json"}).err, "there is no command \"run.json\"; to train it: muster train"));
  muster.write("marked.json", "\xEF\xBB\xBF" + muster.read("run.json"));  // a byte order mark
  CHECK(muster.run({"plan", "marked.json", "--set", "training.workers=3"}).out == usual.out);
}

TEST_CASE("results go to standard output where - or /dev/stdout is the file, and models do not") {
  const Muster muster;
  muster.write("run.json", csvRun(2, false));
  muster.write("rows.csv", "x,y,label\n0,1,0\n1,0,1\n0,2,0\n2,0,1\n");
  REQUIRE(muster.run({"train", "run.json"}).exit == 0);
  const auto names = muster.directory.names();
  const auto predicted = test::succeeded(muster.run({"predict", "run.json"}));
  REQUIRE(contains(predicted.out, "prediction"));
  for (const char* out : {"-", "/dev/stdout"}) {
    CHECK(muster.run({"predict", "run.json", "--out", out}).out == predicted.out);
    CHECK(muster.run({"predict", "--out", out, "run.json"}).out == predicted.out);
    const auto json = muster.run({"convert", "model.safetensors", "--to", "json", "--out", out});
    CHECK(json::parse(json.out).at("layers").is_array());
    CHECK(test::errorOf(muster.run({"convert", "model.safetensors", "--to", "model", "--out", out}))
              .starts_with("muster: --out: " + std::string(out) +
                           " is standard output; give the name of a file"));
    const auto result = test::succeeded(muster.run({"train", "run.json", "--json", out}));
    CHECK(json::parse(result.out).at("epochsFinished") == 40);
    CHECK(contains(result.err, "saved: model.safetensors"));
    CHECK(muster.run({"train", "run.json", "--set", "training.model=" + std::string(out)})
              .err.starts_with("muster: training.model: "));
  }
  CHECK(muster.directory.names() == names);
}

TEST_CASE("class weights for another number of classes are refused before the training") {
  const Muster muster;
  muster.write("run.json", csvRun(2, false));
  muster.write("rows.csv", "x,y,label\n0,1,0\n1,0,1\n0,2,0\n2,0,1\n");
  for (const char* command : {"train", "plan"}) {
    CHECK(test::errorOf(muster.run({command, "run.json", "--set", "data.classWeights=[1,2,3]"})) ==
          "muster: data.classWeights: there are 3 weights for 2 classes\n");
  }
  CHECK(muster.run({"plan", "run.json", "--set", "data.classWeights=[1,2]"}).exit == 0);
  CHECK(muster.run({"plan", "run.json", "--set", "network.updater.learningRate=0.01"}).exit == 0);
}

TEST_CASE("neither a training nor predictions replace the files that they read") {
  const Muster muster;
  muster.write("run.json", csvRun(2, false));
  muster.write("rows.csv", "x,y,label\n0,1,0\n1,0,1\n0,2,0\n2,0,1\n");
  muster.write("train-labels-idx1-ubyte", "labels");
  REQUIRE(muster.run({"train", "run.json"}).exit == 0);
  const auto names = muster.directory.names();
  const auto refused = [&](std::vector<std::string> arguments, const std::string& why) {
    CHECK(contains(test::errorOf(muster.run(arguments)),
                   why + ": writing it for one would overwrite the other"));
  };
  refused({"train", "run.json", "--set", "training.model=run.json"},
          "the run file and training.model are the same file, run.json");
  refused({"train", "run.json", "--json", "run.json"}, "the run file and --json are the same file, run.json");
  refused({"train", "run.json", "--set", "training.model=rows.csv"},
          "data.train and training.model are the same file, rows.csv");
  refused({"train", "run.json", "--set", "data={\"type\": \"mnist\", \"directory\": \".\"}", "--set",
           "training.model=train-labels-idx1-ubyte"},
          "data.directory and training.model are the same file, ./train-labels-idx1-ubyte");
  for (const auto& [file, name] : {std::pair<std::string, std::string>{"run.json", "the run file"},
                                   {"rows.csv", "data.train"},
                                   {"model.safetensors", "training.model"}})
    refused({"predict", "run.json", "--out", file}, name + " and --out are the same file, " + file);
  CHECK(muster.directory.names() == names);
  CHECK(muster.read("run.json") == csvRun(2, false));
  CHECK(muster.run({"predict", "run.json", "--out", "out.csv"}).exit == 0);
}

}  // namespace muster
