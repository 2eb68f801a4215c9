#include "muster/core/listeners/checkpoint_listener.h"

#include <doctest/doctest.h>

#include "muster/core/base/error.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"

namespace muster {
namespace {

using Names = std::set<std::string>;

MultiLayerConfiguration smallNetwork() {
  return {
      .seed = 1, .updater = Sgd{.learningRate = 0.1}, .inputShape = {2}, .layers = {Output{.classes = 2}}};
}

void endEpochs(CheckpointListener& listener, Trainer& trainer, std::int64_t first, std::int64_t last) {
  for (std::int64_t epoch = first; epoch <= last; ++epoch) {
    trainer.model().setCounters(10 * (epoch + 1), epoch + 1);
    listener.onEpochEnd({trainer, epoch, 10 * (epoch + 1), 0, 0});
  }
}

}  // namespace

TEST_CASE("saves every N epochs, keeps the last K, and deletes no other files") {
  test::TemporaryDirectory directory;
  MultiLayerNetwork network(smallNetwork());
  network.init();
  test::FakeTrainer trainer(network);
  const auto place = directory / "a/b";
  std::filesystem::create_directories(place);
  test::writeFile(place / "run-epoch-0001.safetensors", "of an earlier run");
  test::writeFile(place / "other.txt", "x");

  CheckpointListener listener({.directory = place, .everyEpochs = 2, .keepLast = 2, .baseName = "run"});
  listener.onFitStart({.trainer = trainer});
  endEpochs(listener, trainer, 0, 8);  // saves after 2, 4, 6 and 8 epochs
  Names names;
  for (const auto& entry : std::filesystem::directory_iterator(place)) names.insert(entry.path().filename());
  CHECK(names == Names{"other.txt", "run-epoch-0001.safetensors", "run-epoch-0006.safetensors",
                       "run-epoch-0008.safetensors"});
  CHECK(listener.files().size() == 2);
  const auto loaded = MultiLayerNetwork::load(listener.files().back());
  CHECK(loaded->epoch() == 8);
  CHECK(loaded->iteration() == 80);
}

TEST_CASE("all are kept by default, in a directory that is created") {
  test::TemporaryDirectory directory;
  MultiLayerNetwork network(smallNetwork());
  network.init();
  test::FakeTrainer trainer(network);
  CheckpointListener listener({.directory = directory / "new"});
  listener.onFitStart({.trainer = trainer});
  endEpochs(listener, trainer, 0, 3);
  endEpochs(listener, trainer, 3, 3);  // trained again: replaced, not counted twice
  CHECK(listener.files().size() == 4);
  CHECK(listener.files().front().filename() == "checkpoint-epoch-0001.safetensors");
  CHECK(std::filesystem::exists(listener.files().back()));
}

TEST_CASE("a checkpoint that cannot be written keeps the older ones") {
  test::TemporaryDirectory directory;
  test::EchoModel model;
  test::FakeTrainer trainer(model);
  bool full = false;
  const auto save = [&](Model&, const std::filesystem::path& path) {
    if (full) throw FileError(path, "could not be written: No space left on device");
    test::writeFile(path, "x");
  };
  CheckpointListener listener({.directory = directory.path(), .keepLast = 1, .save = save});
  listener.onFitStart({.trainer = trainer});
  endEpochs(listener, trainer, 0, 0);
  full = true;
  CHECK_THROWS_AS(endEpochs(listener, trainer, 1, 1), FileError);
  CHECK(directory.names() == Names{"checkpoint-epoch-0001.safetensors"});
}

TEST_CASE("a model that it cannot save is refused before the training") {
  test::TemporaryDirectory directory;
  test::EchoModel model;
  test::FakeTrainer trainer(model);
  CheckpointListener listener({.directory = directory.path()});
  CHECK(test::thrown<InvalidArgument>([&] { listener.onFitStart({.trainer = trainer}); }) ==
        "checkpoint listener: the model is not a Network; give a `save` function for it");

  test::writeFile(directory / "file", "x");
  CheckpointListener blocked({.directory = directory / "file/inside", .save = [](Model&, const auto&) {}});
  CHECK_THROWS_AS(blocked.onFitStart({.trainer = trainer}), FileError);
  CHECK_THROWS_AS(CheckpointListener({.directory = "x", .everyEpochs = 0}), InvalidArgument);
  CHECK_THROWS_AS(CheckpointListener({.directory = "x", .keepLast = -1}), InvalidArgument);
  CHECK_THROWS_AS(CheckpointListener({.directory = "x", .baseName = ""}), InvalidArgument);
  CHECK_THROWS_AS(CheckpointListener({.directory = "x", .baseName = "a/b"}), InvalidArgument);
}

}  // namespace muster
