#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "examples/resnet18_fashion/options.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/io/model_file.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/datasets/generated_digits.h"
#include "tests/examples/early_interrupt.h"
#include "tests/examples/sandbox.h"

namespace muster {
namespace {

using test::contains;
using test::readFile;

/// The program on a few generated digits, with a narrow network, unpinned, because other tests run
/// concurrently.
class Resnet18Fashion : public test::Sandbox {
 public:
  Resnet18Fashion() : Sandbox(MUSTER_RESNET18_FASHION) {}

  test::Outcome train(int epochs, std::vector<std::string> more) const {
    std::vector<std::string> arguments{
        "--data",    "generated", "--train-examples", "96", "--test-examples", "40",
        "--batch",   "8",         "--width",          "4",  "--epochs",        std::to_string(epochs),
        "--workers", "2",         "--init",           "he", "--pin-threads",   "false",
        "--device",  "cpu"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(std::move(arguments));
  }
};

TEST_CASE("resnet18_fashion trains with two workers, tests each epoch, saves and writes a report") {
  const Resnet18Fashion program;
  const auto run =
      program.train(2, test::withReport({"--save", "net.safetensors", "--json", "result.json"}, "report"));
  CAPTURE(run.err);
  REQUIRE(run.exit == 0);
  CHECK(run.out.starts_with(
      "data: generated digits (not MNIST), 96 images to train with and 40 to test with, from this program\n"
      "plan: 2 workers on cpu (1 thread each, not pinned), averaging every iteration: 2 batches a round; 2 "
      "workers, batch 8 each, learning rate 0.2; "));
  CHECK(contains(run.out, "\nepoch 1: loss "));
  CHECK(contains(run.err, "epoch 1/2: "));
  CHECK(contains(run.err, "epoch 2/2: "));
  CHECK(contains(run.out, "\nepoch  training loss  test accuracy, %  seconds\n1 "));
  // The network is saved first, so that a failing report does not lose it.
  CHECK(contains(run.out, "\nsaved: net.safetensors; loaded again, it gives the same outputs, "));
  if (test::kWithPage) {
    CHECK(contains(readFile(program.directory / "report" / "confusion.txt"), "generated digits (not MNIST)"));
    CHECK(contains(run.out, "\nreport: report: report.html, confusion.txt\n"));
    const auto page = readFile(program.directory / "report" / "report.html");
    for (const char* part : {"\"name\":\"score/worker 1\"", "\"name\":\"test/accuracy\"", "\"confusion\"",
                             "2 workers on cpu (1 thread each, not pinned)"})
      CHECK_MESSAGE(contains(page, part), part);
  }

  CHECK(run.out.ends_with("\njson: result.json\n"));
  const auto result = boost::json::parse(readFile(program.directory / "result.json"));
  CHECK(result.at("workers").as_int64() == 2);
  CHECK(result.at("epochs").as_array().size() == 2);
  CHECK(contains(run.out,
                 fmt::format("test accuracy {:.4f}",
                             result.at("epochs").as_array().back().at("testAccuracy").to_number<double>())));

  // The network in the file has the accuracy that the program printed.
  const auto network = Network::load(program.directory / "net.safetensors");
  CHECK(network->epoch() == 2);
  CHECK(network->iteration() == 12);  // 12 batches an epoch, for two workers
  GeneratedDigitsIterator digits(40, 40, 20, false);
  const auto line = run.out.substr(run.out.find("\nepoch 2: loss "));
  CHECK(contains(line.substr(0, line.find('\n', 1)),
                 fmt::format("test accuracy {:.4f}", network->evaluate(digits).accuracy())));
}

TEST_CASE("the network has the same bits wherever the images are stored") {
  const Resnet18Fashion program;
  for (const std::string placement : {"host", "device"}) {
    const auto run = program.train(1, {"--placement", placement, "--augment", "false", "--save", placement});
    CAPTURE(run.err);
    REQUIRE(run.exit == 0);
    CHECK(run.out.starts_with("images: on the CPU, where the workers are"));
    CHECK(contains(run.out, "batches name rows of them\n") == (placement == "device"));
  }
  CHECK(readFile(program.directory / "host") == readFile(program.directory / "device"));
}

TEST_CASE("the same command gives the same bits, in every mode") {
  for (const std::string mode : {"averaging", "synchronous", "shared"}) {
    CAPTURE(mode);
    const Resnet18Fashion program;
    for (const std::string file : {"a", "b"})
      REQUIRE(program.train(1, {"--mode", mode, "--save", file}).exit == 0);
    CHECK(readFile(program.directory / "a") == readFile(program.directory / "b"));
    REQUIRE(program.train(1, {"--mode", mode, "--augment", "true", "--save", "c"}).exit == 0);
    CHECK(readFile(program.directory / "a") != readFile(program.directory / "c"));
  }
}

TEST_CASE("a saved network is loaded, tested and trained on") {
  const Resnet18Fashion program;
  REQUIRE(program.train(2, {"--save", "whole"}).exit == 0);
  REQUIRE(program.train(1, {"--save", "half"}).exit == 0);
  const auto loaded = [&](const std::string& epochs, const std::string& save) {
    return program.run({"--data", "generated", "--train-examples", "96", "--test-examples", "40", "--batch",
                        "8", "--workers", "2", "--pin-threads", "false", "--load", "half", "--epochs", epochs,
                        "--save", save});
  };
  const auto tested = loaded("0", "copy");
  CHECK(tested.exit == 0);
  CHECK(contains(tested.out, "\nloaded: half, with 1 epoch finished, test accuracy "));
  CHECK_FALSE(contains(tested.out, "\nepoch "));
  CHECK(readFile(program.directory / "copy") == readFile(program.directory / "half"));
  const auto trained = loaded("1", "both");
  CHECK(trained.exit == 0);
  CHECK(contains(trained.out, "\nepoch 2: loss "));
  CHECK(readFile(program.directory / "both") == readFile(program.directory / "whole"));
}

TEST_CASE("Ctrl-C saves the network, and prints how far the training has come") {
  const Resnet18Fashion program;
  test::Program running(
      MUSTER_RESNET18_FASHION,
      program.launch(test::withReport({"--data", "generated", "--train-examples", "96", "--test-examples",
                                       "40", "--batch", "8", "--width", "4", "--pin-threads", "false",
                                       "--device", "cpu", "--epochs", "100000", "--save", "net"},
                                      "report")));
  REQUIRE(running.awaitText("epoch 1: "));
  running.signal(SIGINT);
  const auto outcome = running.wait();
  CHECK(outcome.exit == 130);
  CHECK(contains(outcome.out, " of 100000 epochs finished\n"));
  CHECK(contains(outcome.out, "\nsaved: net; loaded again, "));
  if (!test::kWithPage) return;
  CHECK(contains(outcome.out, "\nreport: report: "));
  CHECK(contains(readFile(program.directory / "report" / "confusion.txt"), "\ninterrupted after "));
}

TEST_CASE("Ctrl-C before the first step saves nothing") {
  const Resnet18Fashion program;
  test::checkInterruptBeforeFirstStep(
      program, MUSTER_RESNET18_FASHION,
      [](const std::string& workers) {
        return std::vector<std::string>{
            "--data",        "generated", "--train-examples", "96",     "--test-examples", "40",
            "--batch",       "8",         "--width",          "16",     "--workers",       workers,
            "--pin-threads", "false",     "--device",         "cpu",    "--learning-rate", "0.01",
            "--epochs",      "100000",    "--save",           "earlier"};
      },
      "earlier");
}

TEST_CASE("CIFAR-10 is trained in colour, with shifts and flips by default") {
  const Resnet18Fashion program;
  for (const std::string name :
       {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"}) {
    const auto path = program.directory / (name + ".bin");
    test::writeFile(path, "");
    std::filesystem::resize_file(path, 10000 * 3073);  // zeros: black images of class 0
  }
  const std::vector<std::string> arguments{
      "--data",        "cifar10", "--data-dir", ".",  "--train-examples", "16", "--test-examples", "8",
      "--batch",       "8",       "--width",    "4",  "--epochs",         "1",  "--init",          "he",
      "--pin-threads", "false",   "--save",     "net"};
  const auto run = program.run(arguments);
  CAPTURE(run.err);
  REQUIRE(run.exit == 0);
  CHECK(run.out.starts_with(
      "data: CIFAR-10, 16 images to train with, moved and mirrored at random, and 8 to test "));
  CHECK(contains(run.out, "test accuracy 1.0000"));
  CHECK(ComputationGraph::load(program.directory / "net")->configuration().inputs[0].shape ==
        Shape{3, 32, 32});
  const auto grey = program.run({"--data", "generated", "--train-examples", "8", "--load", "net"});
  CHECK(grey.exit == 1);
  CHECK(contains(grey.err, "net: is of a network for [3, 32, 32], but the images are [1, 28, 28]"));
}

TEST_CASE("the defaults are those of the guide, and the learning rate is scaled with the workers") {
  const char* const two[] = {"resnet18_fashion", "--workers", "4"};
  const auto options = example::readResnet18Options(3, two);
  REQUIRE(options.has_value());
  CHECK(options->batch == 256);
  CHECK(options->learningRate == doctest::Approx(0.4));
  CHECK((options->init.kind == InitKind::Normal));
  CHECK(options->init.scale == 0.01);
  CHECK(options->data.name == "fashion");
  CHECK_FALSE(options->augment);
  const char* const own[] = {"resnet18_fashion", "--workers", "4", "--learning-rate", "0.3",
                             "--data",           "cifar10"};
  CHECK(example::readResnet18Options(7, own)->learningRate == 0.3);
  CHECK(example::readResnet18Options(7, own)->augment);
}

TEST_CASE("help explains every option, and invalid options exit with 2") {
  const Resnet18Fashion program;
  const auto help = program.run({"--help"});
  CHECK(help.exit == 0);
  for (const char* option : {"workers",
                             "mode",
                             "averaging-frequency",
                             "strategy",
                             "strategy-options",
                             "batch",
                             "learning-rate",
                             "epochs",
                             "seed",
                             "init",
                             "width",
                             "augment",
                             "threads-per-worker",
                             "pin-threads",
                             "math-mode",
                             "device",
                             "data",
                             "data-dir",
                             "examples",
                             "train-examples",
                             "test-examples",
                             "report",
                             "json",
                             "save",
                             "load",
                             "help"})
    CHECK_MESSAGE(contains(help.out, "\n  --" + std::string(option) + " "), option);
  CHECK(contains(help.out, "mnist, fashion, cifar10 or generated"));

  const std::vector<std::pair<std::vector<std::string>, std::string>> refused{
      {{"--data", "faces"}, "--data must be mnist, fashion, cifar10 or generated, got faces"},
      {{"--workers", "0"}, "--workers must be between 1 and 1024, got 0"},
      {{"--epochs", "0"}, "--epochs must be between 1 and 1000000, got 0"},
      {{"--learning-rate", "0"}, "--learning-rate must be a positive number, got 0"},
      {{"--init", "normal"},
       "--init must be xavier, he or normalX with a positive X, as in normal0.01, got normal"},
      {{"--init", "normal-1"},
       "--init must be xavier, he or normalX with a positive X, as in normal0.01, got normal-1"},
      {{"--init", "he", "--load", "x"}, "--init cannot be combined with --load, which brings its network"},
      {{"--mode", "shared", "--averaging-frequency", "2"},
       "--averaging-frequency needs --mode averaging; the other modes merge every iteration"},
      {{"--train-examples", "0"}, "--train-examples must be at least 1, got 0"},
      {{"--width", "0"}, "--width must be between 1 and 1024, got 0"},
      {{"--placement", "gpu"}, "--placement must be auto, host or device, got gpu"},
      {{"--placement", "device", "--augment", "true"},
       "--placement device cannot be combined with --augment, which moves and mirrors the images on the "
       "CPU"}};
  for (const auto& [arguments, sentence] : refused) {
    const auto run = program.run(arguments);
    CHECK(run.exit == 2);
    CHECK(run.out.empty());
    CHECK(run.err == "resnet18_fashion: " + sentence + "\n");
  }
}

TEST_CASE("failures of resnet18_fashion exit with 1 and a sentence") {
  const Resnet18Fashion program;
  for (const auto& [option, path] : std::vector<std::pair<std::string, std::string>>{
           {"--save", "missing/net"}, {"--load", "missing-net"}}) {
    auto arguments = std::vector<std::string>{"--data", "generated", "--train-examples", "8", option, path};
    const auto run = program.run(arguments);
    CHECK(run.exit == 1);
    CHECK(run.out.empty());
    CHECK(contains(run.err, "resnet18_fashion: " + path + ": "));
  }
  test::writeFile(program.directory / "broken", "no model");
  const auto broken = program.run({"--data", "generated", "--train-examples", "8", "--load", "broken"});
  CHECK(broken.exit == 1);
  CHECK(contains(broken.err, "resnet18_fashion: broken: "));
  const auto noData = program.run({"--data", "cifar10", "--data-dir", "nowhere"});
  CHECK(noData.exit == 1);
  CHECK(contains(noData.err, "nowhere"));
}

}  // namespace
}  // namespace muster
