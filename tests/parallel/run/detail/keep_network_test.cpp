// What becomes of a trained network if its training or its file fails.
#include "muster/parallel/run/detail/keep_network.h"

#include "tests/support/environment.h"
#include "tests/support/log_lines.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"

namespace muster::detail {
namespace {

using test::readFile;
using test::thrown;

TEST_CASE("a trained model is saved before its failure is reported; if it diverged, beside its file") {
  const test::TemporaryDirectory directory;
  int saved = 0;
  bool failed = false;
  const auto save = [&](bool afterFailure) {
    ++saved;
    failed = afterFailure;
  };
  const Beside beside{directory / "model.safetensors", [](const std::filesystem::path& file) {
                        test::writeFile(file, "doubtful");
                        return true;
                      }};
  const auto other = (directory / "model-diverged.safetensors").string();
  const auto kept = fmt::format("and the network is saved as {} instead of {}", other, beside.file.string());
  trainAndSave([] {}, save, "--lr 1", beside);
  CHECK(saved == 1);
  CHECK_FALSE(failed);

  CHECK(thrown<FileError>([&] {
          trainAndSave([] { throw FileError("plot", "disk full"); }, save, "--lr 1", beside);
        }) == "plot: disk full");
  CHECK(saved == 2);
  CHECK(failed);
  CHECK_FALSE(std::filesystem::exists(other));

  test::LogLines log;
  const auto full = [](bool) { throw FileError("model", "no room"); };
  CHECK(thrown<FileError>([&] {
          trainAndSave([] { throw FileError("plot", "disk full"); }, full, "--lr 1", beside);
        }) == "plot: disk full");
  CHECK(log.all() == std::vector<std::string>{"what was trained could not be saved: model: no room"});

  const auto diverge = [] {
    const auto cause = std::make_exception_ptr(NonFiniteScore("the score became nan"));
    throw TrainingError("worker 0: the score became nan", 0, cause);
  };
  CHECK(thrown<NonFiniteScore>([&] { trainAndSave(diverge, save, "--lr 1", beside); }) ==
        "worker 0: the score became nan; this was with --lr 1, " + kept);
  CHECK(saved == 2);
  CHECK(test::readFile(other) == "doubtful");
  std::filesystem::remove(other);
  const auto doubts = [](bool) { throw NonFiniteScore("diverged"); };
  CHECK(thrown<NonFiniteScore>([&] { trainAndSave([] {}, doubts, "--lr 1", beside); }) ==
        "diverged; this was with --lr 1, " + kept);
  CHECK(test::readFile(other) == "doubtful");
  CHECK_FALSE(std::filesystem::exists(beside.file));

  const Beside untrained{beside.file, [](const auto&) { return false; }};
  for (const auto& none : {Beside{}, untrained})
    CHECK(thrown<NonFiniteScore>([&] { trainAndSave([] {}, doubts, "--lr 1", none); }) ==
          "diverged; this was with --lr 1, and nothing was saved");
  const Beside broken{beside.file, [](const std::filesystem::path&) -> bool { throw Error("it broke"); }};
  CHECK(thrown<NonFiniteScore>([&] { trainAndSave([] {}, doubts, "--lr 1", broken); }) ==
        "diverged; this was with --lr 1, and the network could not be saved: it broke");
}

TEST_CASE("a disk that has no room for the network is found before the training") {
  const test::TemporaryDirectory directory;
  CHECK_NOTHROW(requireDiskRoom(directory / "new" / "m", 1));
  CHECK_NOTHROW(requireDiskRoom("", std::int64_t{1} << 60));
  const auto refused =
      thrown<FileError>([&] { requireDiskRoom(directory / "new" / "m", std::int64_t{1} << 60); });
  CHECK_MESSAGE(
      refused.starts_with((directory / "new/m").string() + ": the network takes 1152921504606.8 MB, and "),
      refused);
}

TEST_CASE("if a file can no longer be written, another one is, and the error says where") {
  const test::TemporaryDirectory directory, temporary;
  const test::Environment environment("TMPDIR", temporary.path().string());
  const auto write = [&](const std::filesystem::path& path) {
    if (path.parent_path() != temporary.path()) throw FileError(path, "disk full");
    test::writeFile(path, "the network");
  };
  const auto error = thrown<Error>([&] { writeHereOrElsewhere(directory / "m.safetensors", write); });
  REQUIRE(temporary.names().size() == 1);
  const auto there = temporary.path() / *temporary.names().begin();
  CHECK(error ==
        (directory / "m.safetensors").string() + ": disk full; saved as " + there.string() + " instead");
  CHECK(readFile(there) == "the network");
  CHECK(thrown<FileError>([&] {
          writeHereOrElsewhere("m", [](const auto& path) { throw FileError(path, "disk full"); });
        }) == "m: disk full");
  const test::TemporaryDirectory home;
  const test::Environment atHome("HOME", home.path().string());
  const test::Environment nowhere("TMPDIR", "/nonexistent");
  const auto here = [&](const std::filesystem::path& path) {
    if (path.parent_path() != home.path()) throw FileError(path, "disk full");
    test::writeFile(path, "the network");
  };
  CHECK(thrown<Error>([&] {
          writeHereOrElsewhere(directory / "m", here);
        }).starts_with((directory / "m").string() + ": disk full; saved as " + home.path().string() + "/m-"));
  CHECK(thrown<FileError>([&] { writeHereOrElsewhere(directory / "m", write); }) ==
        (directory / "m").string() + ": disk full");
}

}  // namespace
}  // namespace muster::detail
