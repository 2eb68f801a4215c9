// The small examples as a user runs them. Those that share batches among replicas by a loop of their own are
// in own_loops_test, what all refuse is in options_test.

#include "muster/core/eval/evaluation.h"
#include "muster/core/io/model_file.h"
#include "muster/core/io/safetensors.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/generated_digits.h"
#include "muster/datasets/mnist.h"
#include "tests/examples/sandbox.h"
#include "tests/support/sanitizers.h"
#include "tests/support/skip.h"

namespace muster {
namespace {

using test::numberAfter;
using test::Sandbox;

TEST_CASE("the README's program without MNIST ends with what is missing, and saves nothing") {
  const Sandbox program(MUSTER_MNIST_CONVNET);
  CHECK_CONTAINS(test::errorOf(program(""), 1),
                 "mnist_convnet: mnist: train-images-idx3-ubyte.gz is not in ");
  CHECK(program.directory.names().empty());
}

TEST_CASE("the README's program trains, tests and saves a network on MNIST") {
  const char* const data = test::realDataDir();
  if (test::kSanitized) return test::skip("an epoch of MNIST takes too long under a sanitizer");
  if (data == nullptr) return test::skip("the real MNIST is needed; MUSTER_DATA_DIR says where it is");
  Sandbox program(MUSTER_MNIST_CONVNET);
  program.environment["MUSTER_DATA_DIR"] = std::filesystem::absolute(data).string();
  const auto run = program.succeeds("--workers 1 --epochs 1");
  CHECK_CONTAINS(run.out, "\nepoch 1/1: loss 0.");
  CHECK_CONTAINS(run.out, "saved: convnet.safetensors\n");
  MnistDataSetIterator images(128, /*train=*/false, /*seed=*/0, {.directory = data});
  const double accuracy =
      MultiLayerNetwork::load(program.directory / "convnet.safetensors")->evaluate(images).accuracy();
  CHECK(accuracy > 0.95);
  CHECK_CONTAINS(run.out, fmt::format("test accuracy {:.4f}\n", accuracy));
}

constexpr const char* kAccuracy = "accuracy on other digits ";

TEST_CASE("a user-defined layer is checked, learns, is saved and loaded") {
  const Sandbox program(MUSTER_OWN_LAYER);
  const auto out = program.succeeds("").out;
  CHECK(out.starts_with("gradient check: 77 elements; "));
  CHECK(numberAfter(out, kAccuracy) > 0.8);
  CHECK(out.ends_with("saved: own-layer.safetensors; loaded, it predicts the same, bit for bit\n"));
  const auto file = readSafetensors(program.directory / "own-layer.safetensors");
  REQUIRE(file.find("tanhskip1.alpha") != nullptr);
  CHECK(file.find("tanhskip1.alpha")->data<float>()[0] != 0.5f);  // the layer was trained
  CHECK(file.find("tanhskip2.weight")->shape() == Shape{64, 64});
}

TEST_CASE("a user-defined model learns with several workers, is saved and loaded") {
  const Sandbox program(MUSTER_OWN_MODEL);
  const auto out = program.succeeds("--workers 3 --epochs 6").out;
  CHECK(out.starts_with("plan: 3 workers on cpu"));
  CHECK(numberAfter(out, kAccuracy) > 0.8);
  CHECK(out.ends_with("saved: own-model.safetensors; loaded, it predicts the same, bit for bit\n"));
  const auto file = readSafetensors(program.directory / "own-model.safetensors");
  CHECK(file.tensors.size() == 4);
  CHECK(file.find("digit.weight")->shape() == Shape{10, 64});
}

TEST_CASE("a user-defined strategy trains beside averaging, and its model is saved") {
  const Sandbox program(MUSTER_OWN_STRATEGY);
  const auto out = program.succeeds("--epochs 2").out;
  for (const char* part : {", averaging every 3 iterations: 6 batches per round",
                           ", annealed averaging every 3 iterations: 6 batches per round",
                           "\nsaved: own-strategy.safetensors\n"})
    CHECK_CONTAINS(out, part);
  CHECK(numberAfter(out, kAccuracy) > 0.7);
  CHECK(MultiLayerNetwork::load(program.directory / "own-strategy.safetensors")->epoch() == 2);
}

/// A few images, with a narrow network.
const std::string kSmallResNet = " --examples 96 --batch 8 --width 4";

TEST_CASE("resnet18_fashion trains with two workers, tests each epoch and saves") {
  const Sandbox program(MUSTER_RESNET18_FASHION);
  const auto out = program.succeeds("--data generated --epochs 2" + kSmallResNet).out;
  CHECK(out.starts_with("plan: 2 workers on cpu"));
  CHECK_CONTAINS(out, "averaging every iteration: 2 batches per round");
  CHECK_CONTAINS(out, "\nepoch 1/2: loss ");
  CHECK(out.ends_with("\nsaved: resnet18.safetensors\n"));

  // The network in the file has the accuracy that the program printed, and the chapter's learning rate.
  const auto network = ComputationGraph::load(program.directory / "resnet18.safetensors");
  CHECK(network->epoch() == 2);
  CHECK(network->iteration() == 12);  // 12 batches per epoch, for two workers
  CHECK(network->configuration().updater.learningRate().at(0) == 0.2);
  GeneratedDigitsIterator digits(40, 96, 20, false);
  CHECK_CONTAINS(out, fmt::format("test accuracy {:.4f}\nsaved", network->evaluate(digits).accuracy()));
}

TEST_CASE("resnet18_fashion trains CIFAR-10 in colour, and data that are missing are an error") {
  Sandbox program(MUSTER_RESNET18_FASHION);
  const auto line = "--data cifar10 --epochs 1" + kSmallResNet;
  const auto missing = program(line);
  CHECK(missing.out == "");
  CHECK_CONTAINS(test::errorOf(missing, 1), "resnet18_fashion: ");
  for (const std::string name :
       {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"})
    program.write(name + ".bin", std::string(10000 * 3073, '\0'));  // black images of class 0
  program.environment["MUSTER_DATA_DIR"] = program.directory.path().string();
  CHECK_CONTAINS(program.succeeds(line).out, "test accuracy 1.0000");
  CHECK(ComputationGraph::load(program.directory / "resnet18.safetensors")->configuration().inputs[0].shape ==
        Shape{3, 32, 32});
}

TEST_CASE("the same command gives the same bits, and another one others") {
  const std::string few = "--epochs 1 --examples 300", generated = "--data generated --epochs 1";
  const std::tuple<const char*, const char*, std::string, const char*> trainings[] = {
      {MUSTER_OWN_LAYER, "own-layer", few, " --workers 3"},
      {MUSTER_OWN_MODEL, "own-model", few, " --workers 3"},
      {MUSTER_OWN_STRATEGY, "own-strategy", few, " --workers 3"},
      {MUSTER_RESNET18_FASHION, "resnet18", generated + kSmallResNet, " --seed 9"},
      {MUSTER_LENET_FROM_SCRATCH, "lenet", generated + " --examples 30 --batch 14", " --seed 9"},
      {MUSTER_LENET_FROM_SCRATCH, "lenet", generated + " --examples 30 --batch 14 --devices 3", " --seed 9"}};
  for (const auto& [executable, model, line, other] : trainings) {
    CAPTURE(model);
    const Sandbox program(executable);
    const auto trained = [&, name = model + std::string(".safetensors")](const std::string& command) {
      program.succeeds(command);
      return program.read(name);
    };
    const auto first = trained(line);
    CHECK(first == trained(line));
    CHECK(first != trained(line + other));
  }
}

/// The largest difference of two tensors, relative to the first; infinity for other shapes.
double apart(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return INFINITY;
  double worst = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    const double x = a.data<float>()[i], y = b.data<float>()[i];
    if (x != y) worst = std::max(worst, std::abs(x - y) / std::abs(x));
  }
  return worst;
}

TEST_CASE("fine_tune trains a new head on a frozen body with torchvision's names, then the body, too") {
  const Sandbox program(MUSTER_FINE_TUNE);
  const auto run = program.succeeds("--examples 1500");
  CHECK_CONTAINS(run.out, "ResNet-18 of width 8; a new head for 5 classes");
  CHECK(numberAfter(run.out, "other images ") > 0.5);  // guessing is 0.2
  const auto before = readSafetensors(program.directory / "backbone.safetensors"),
             after = readSafetensors(program.directory / "fine-tuned.safetensors");
  REQUIRE(after.tensors.size() == before.tensors.size());
  int changed = 0;
  for (const auto& [name, values] : before.tensors) {
    CAPTURE(name);
    const double difference = apart(values, *after.find(name));
    if (name.starts_with("fc."))
      ++changed;
    else if (name.ends_with("running_var"))
      CHECK(difference <= 0x1p-22);  // converted there and back: two roundings
    else
      CHECK(difference == 0);
  }
  CHECK(changed == 2);
  CHECK(apart(*before.find("fc.weight"), *after.find("fc.weight")) > 0.01);

  const auto again = program.succeeds(
      "--weights fine-tuned.safetensors --examples 200 --epochs 1 --backbone-rate 0.1 --model "
      "again.safetensors");
  CHECK_CONTAINS(again.out, "a new head for 10 classes");
  CHECK(apart(*before.find("conv1.weight"),
              *readSafetensors(program.directory / "again.safetensors").find("conv1.weight")) > 0);
}

TEST_CASE("fine_tune refuses weights and data that it cannot use before anything is trained") {
  const Sandbox program(MUSTER_FINE_TUNE);
  program.refuses("--weights missing", "fine_tune: missing: cannot be read: No such file or directory\n", 1);
  program.refuses("--data cifar10", "fine_tune: --data cifar10 needs --weights\n");
  CHECK(program.directory.names().empty());
  Safetensors other;
  other.add("bn1.weight", Tensor::zeros({8}));
  writeSafetensors(program.directory / "other", other);
  program.refuses("--weights other",
                  "fine_tune: other: has no conv1.weight of four dimensions: it is not a ResNet of "
                  "torchvision\n",
                  1);
}

/// The program char_lstm with a small text.
struct CharLstm : Sandbox {
  CharLstm() : Sandbox(MUSTER_CHAR_LSTM) {
    std::string text;
    for (int i = 0; i < 60; ++i) text += "the quick brown fox jümps over the lazy dog\n";
    write("text", text);
  }
};

const std::string kSmallLstm = " --steps 20 --units 24 --lr 0.02 --length 60";

/// The text from the last sample on.
std::string lastSample(const std::string& text) {
  const auto end = text.rfind("---\n"), begin = text.rfind("---\n", end - 1);
  REQUIRE(begin != std::string::npos);
  return text.substr(begin, end - begin);
}

TEST_CASE("char_lstm learns, writes samples, and writes the same text from the saved model") {
  const CharLstm program;
  const auto out = program.succeeds("--text text --epochs 6 --model net" + kSmallLstm).out;
  CHECK(out.starts_with("text: text, 2640 characters, 29 different ones\n"));
  CHECK_CONTAINS(out, "plan: 2 workers");
  CHECK(out.ends_with("\nsaved: net\n"));
  const double first = numberAfter(out, "epoch 1/6: loss ");
  CHECK(first < 3.5);  // ln 29 = 3.4
  CHECK(numberAfter(out, "epoch 6/6: loss ") < 0.7 * first);
  CHECK(readModelNotes(program.directory / "net").at("char_lstm.vocabulary").starts_with("\n abcdefg"));

  CHECK(lastSample(program.succeeds("--model net --length 60").out) == lastSample(out));
  const auto prompted = program.succeeds("--model net --length 60 --seed 7 --prompt 'the jü'").out;
  CHECK(prompted.starts_with("---\nthe jü"));
  CHECK(prompted.size() > 60);

  program.succeeds("--text text --epochs 6 --model again" + kSmallLstm);
  CHECK(program.read("net") == program.read("again"));
}

TEST_CASE("text that char_lstm writes cannot send commands to the terminal") {
  const CharLstm program;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "\x1B[2J";
  program.write("commands", text);
  for (const auto& line : {"--text commands --epochs 1 --model m" + kSmallLstm, std::string("--model m")}) {
    const auto out = program.succeeds(line).out;
    CHECK_CONTAINS(out, "\\x1b");
    CHECK_LACKS(out, "\x1B");
  }
}

TEST_CASE("a text that char_lstm cannot learn, or continue, is refused with a sentence") {
  const CharLstm program;
  program.write("latin1", "Gr\xFC\xDF");
  program.write("one", std::string(100, 'a'));
  const auto refuses = [&](const std::string& line, const std::string& sentence) {
    const auto run = program(line);
    CHECK(run.exit != 0);
    CHECK(run.out == "");
    CHECK_CONTAINS(run.err, "char_lstm: " + sentence);
  };
  refuses("--text latin1", "latin1: is not UTF-8: the byte 0xFC at offset 2 cannot begin a character");
  refuses("--text missing", "missing: cannot be read: No such file or directory");
  refuses("--text one", "one has one character only, so there is nothing to learn");
  refuses("--text text --model text", "--text and --model are the same file, text");
  refuses("--text one --model x --steps 100", "one: too short: ");
  program.succeeds("--text text --epochs 1 --model net" + kSmallLstm);
  refuses("--model net --prompt öl", "vocabulary: it does not know the character \"ö\" at place 0");
  MultiLayerNetwork other({.inputShape = {2}, .layers = {Output{.classes = 2}}});
  other.init();
  other.save(program.directory / "other");
  refuses("--model other", "other: holds no characters: char_lstm has not saved it");
}

}  // namespace
}  // namespace muster
