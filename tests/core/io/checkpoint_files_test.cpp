#include "muster/core/io/checkpoint_files.h"

#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

namespace fs = std::filesystem;

/// A directory "c" with the files of a training after epochs 1 and 2.
struct Checkpoints {
  Checkpoints() {
    network.init();
    fs::create_directory(directory / "c");
    for (const int epoch : {1, 2}) save(at(epoch), epoch);
  }
  fs::path at(std::int64_t epoch) const { return checkpointPath(directory / "c", "checkpoint", {epoch, 0}); }
  fs::path best() const { return bestCheckpointPath(directory / "c", "checkpoint"); }
  void save(const fs::path& path, std::int64_t epoch) {
    network.setCounters(10 * epoch, epoch);
    network.save(path);
  }
  /// What is said to a training, after the directory; "": it may write there.
  std::string refusal(const CheckpointWriter& writer, const std::string& spelling = "c") const {
    const auto text =
        thrown<FileError>([&] { requireOwnCheckpoints(directory / spelling, "checkpoint", writer); });
    const auto begin = (directory / spelling).string() + ": ";
    if (!text.empty()) REQUIRE_MESSAGE(text.starts_with(begin), text);
    return text.substr(std::min(begin.size(), text.size()));
  }

  TemporaryDirectory directory;
  MultiLayerNetwork network{{.seed = 1, .inputShape = {2}, .layers = {Output{.classes = 2}}}};
};

const std::string kAdvice = "; continue that training, choose another directory, or remove ";
const std::string kOne = "checkpoint-epoch-0001.safetensors", kTwo = "checkpoint-epoch-0002.safetensors";

TEST_CASE("a new training may write checkpoints only where there are none") {
  Checkpoints all;
  const auto held = [](const std::string& newest) {
    return "holds checkpoints of an earlier training, up to " + newest + kAdvice + "these files";
  };
  for (const char* spelling : {"c", "./c/."}) CHECK(all.refusal({}, spelling) == held(kTwo));
  CHECK(all.refusal({.own = {all.at(2)}}) == held(kOne));
  CHECK(all.refusal({.own = {all.at(1), all.at(2)}}) == "");
  CHECK(all.refusal({}, "missing") == "");
  for (const int epoch : {1, 2}) fs::remove(all.at(epoch));
  CHECK(all.refusal({}) == "");
  writeFile(all.directory / "c" / "other-epoch-0001.safetensors", "x");
  CHECK(all.refusal({}) == "");
  all.save(all.best(), 1);
  CHECK(all.refusal({}) ==
        "holds checkpoint-best.safetensors, the best state of an earlier training" + kAdvice + "this file");
  CHECK(all.refusal({.own = {all.best()}}) == "");
  CHECK(all.refusal({.continues = all.best()}) == "");
  CHECK_FALSE(all.refusal({.continues = all.directory / "elsewhere"}).empty());
}

TEST_CASE("a training continues from a directory's newest checkpoint, by any path, and from no older one") {
  Checkpoints all;
  all.save(all.best(), 1);
  CHECK(all.refusal({.continues = all.at(2), .own = {all.at(2)}}) == "");
  CHECK(all.refusal({.continues = all.best(), .own = {all.at(2), all.best()}}) == "");
  const std::string older = "holds " + kTwo + ", which is newer than " + kOne +
                            ", from which the training is to continue" + kAdvice + "the newer files";
  CHECK(all.refusal({.continues = all.at(1), .own = {all.at(1)}}) == older);
  fs::create_directory_symlink(all.directory / "c", all.directory / "link");
  for (const auto& c : {all.directory / "c", all.directory / "link", all.directory / "c/../link/."}) {
    CAPTURE(c);
    CHECK(all.refusal({.continues = c / kTwo}) == "");
    CHECK(all.refusal({.continues = c / kOne}) == older);
  }
  CHECK(all.refusal({.continues = all.best()}) ==
        "holds checkpoints up to " + kTwo +
            ", but the training is to continue from checkpoint-best.safetensors" + kAdvice + "these files");
  fs::remove(all.at(2));
  CHECK(all.refusal({.continues = all.at(1)}) == "");
}

TEST_CASE("a training that continues from a file elsewhere may go on only beside the same state") {
  Checkpoints all;
  const auto copy = all.directory / "copy", other = all.directory / "other";
  fs::copy_file(all.at(2), copy);
  CHECK(all.refusal({.continues = copy}) == "");
  const auto refused = [&](const fs::path& from) {
    CHECK(all.refusal({.continues = from}) == "holds checkpoints up to " + kTwo +
                                                  ", but the training is to continue from another file, " +
                                                  from.string() + kAdvice + "these files");
  };
  all.save(other, 3);
  refused(other);
  writeFile(other, "broken");
  refused(other);
  refused(all.directory / "missing");
}

TEST_CASE("a model that was saved after its last checkpoint may go on beside it") {
  Checkpoints all;
  const auto saved = all.directory / "saved";
  all.network.trainingState() = {{"position", numbersAs<std::int64_t>(std::vector<std::int64_t>{1, 2})}};
  all.save(all.at(2), 2);  // a checkpoint
  all.network.trainingState().clear();
  all.save(saved, 2);
  REQUIRE(readFile(saved) != readFile(all.at(2)));
  CHECK(all.refusal({.continues = saved}) == "");
  for (auto& block : all.network.state())
    if (block->kind == BlockKind::Parameters) block->values.span<float>()[0] += 1;
  all.save(saved, 2);
  CHECK_FALSE(all.refusal({.continues = saved}).empty());
}

TEST_CASE("a model that this process has trained goes on only where no checkpoint is further") {
  Checkpoints all;
  all.save(all.best(), 1);
  for (const int iteration : {0, 25}) CHECK(all.refusal({.place = CheckpointPlace{2, iteration}}) == "");
  CHECK(all.refusal({.place = CheckpointPlace{1, 15}}) ==
        "holds checkpoints of an earlier training, up to " + kTwo +
            ", and this one begins at epoch 2 (iteration 15)" + kAdvice + "these files");
}

}  // namespace
}  // namespace muster::test
