#include "muster/core/listeners/model_writer.h"

#include "muster/core/listeners/checkpoint_listener.h"
#include "muster/core/listeners/early_stopping.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/child_process.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

MultiLayerConfiguration wide(std::int64_t inputs) {
  return {.seed = 1, .inputShape = {inputs}, .layers = {Output{.classes = 100}}};
}

TEST_CASE("files are written in the order in which they were begun, by any of the writers") {
  const TemporaryDirectory directory;
  MultiLayerNetwork large(wide(5000)), small(wide(1));
  large.init();
  small.init();
  ModelWriter first, second;
  CHECK_FALSE(first.begun());
  CHECK_FALSE(first.busy());
  for (int turn = 0; turn < 3; ++turn) {
    const auto before = directory / fmt::format("large{}", turn);
    first.write(large, {}, {}, before);
    second.write(small, {}, {}, directory / "small");
    CHECK(first.begun());
    second.finish();
    CHECK(std::filesystem::exists(before));
    CHECK_FALSE(second.begun());
  }
  first.finish();
  CHECK_FALSE(first.busy());
  CHECK(directory.names() == std::set<std::string>{"large0", "large1", "large2", "small"});
  checkModelFile(directory / "small");
}

TEST_CASE("a file holds the model as it was when its write began") {
  const TemporaryDirectory directory;
  MultiLayerNetwork network(wide(500));
  network.init();
  network.setCounters(7, 1);
  ModelWriter writer;
  writer.write(network, {}, {{"a", "b"}}, directory / "m");
  network.setCounters(8, 1);
  writer.finish();
  CHECK(Network::load(directory / "m")->iteration() == 7);
  CHECK(readModelNotes(directory / "m").at("a") == "b");
  std::filesystem::create_directory(directory / "d");
  CHECK_THROWS_AS(writer.write(network, {}, {}, directory / "d"), FileError);
  CHECK_FALSE(writer.begun());
}

TEST_CASE("the best files are written while the training runs, and a full disk is reported later") {
  const TemporaryDirectory directory;
  const auto told = [&](const std::string& file, auto makeListener) {
    return inChild([&] {
      MultiLayerNetwork network(wide(500));
      network.init();
      FakeTrainer trainer(network);
      trainer.state = {{"some", Tensor::zeros({3})}};
      auto listener = makeListener();
      listener.onFitStart({.trainer = trainer});
      limitFileSize(10000);
      network.setCounters(3, 1);
      listener.onEpochEnd({trainer, 0, 3, 0.5, 3});
      network.setCounters(6, 2);
      const std::string problem = thrown<FileError>([&] { listener.onFitEnd(trainer); });
      return textOf(problem == (directory / file).string() + ": could not be written: File too large",
                    network.epoch());
    });
  };
  CHECK(told("best", [&] {
          return EarlyStopping({.monitor = Monitor::TrainingScore,
                                .mode = MonitorMode::Min,
                                .restoreBest = true,
                                .bestFile = directory / "best",
                                .sink = [](std::string_view) {}});
        }) == "true 1");
  CHECK(told("checkpoint-best.safetensors", [&] {
          return CheckpointListener(
              {.directory = directory.path(),
               .everyEpochs = 0,
               .everyIterations = 1000,
               .best = Monitored{.monitor = Monitor::TrainingScore, .mode = MonitorMode::Min}});
        }) == "true 2");
  CHECK(directory.names().empty());
}

}  // namespace
}  // namespace muster::test
