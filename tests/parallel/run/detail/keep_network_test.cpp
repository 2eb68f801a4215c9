// What becomes of a trained network if its training or its file fails.
#include "muster/parallel/run/detail/keep_network.h"

#include "tests/support/environment.h"
#include "tests/support/log_lines.h"
#include "tests/support/test.h"

namespace muster::detail {
namespace {

using test::readFile;
using test::thrown;

TEST_CASE("a trained model is saved before its failure is reported; if it diverged, beside its file") {
  const test::TemporaryDirectory directory;
  std::vector<bool> saved;  // whether after a failure
  const auto save = [&](bool afterFailure) { saved.push_back(afterFailure); };
  const auto full = [](bool) { throw FileError("model", "no room"); };
  const auto doubts = [](bool) { throw NonFiniteScore("diverged"); };
  const auto plotFails = [] { throw FileError("plot", "disk full"); };
  const Beside beside{directory / "model.safetensors", [](const std::filesystem::path& file) {
                        test::writeFile(file, "doubtful");
                        return true;
                      }};
  const auto other = (directory / "model-diverged.safetensors").string();
  trainAndSave([] {}, save, "--lr 1", beside);
  CHECK(thrown<FileError>([&] { trainAndSave(plotFails, save, "--lr 1", beside); }) == "plot: disk full");
  CHECK(saved == std::vector{false, true});
  CHECK_FALSE(std::filesystem::exists(other));

  const test::LogLines log;
  CHECK(thrown<FileError>([&] { trainAndSave(plotFails, full, "--lr 1", beside); }) == "plot: disk full");
  CHECK(log.all() == std::vector<std::string>{"what was trained could not be saved: model: no room"});

  const auto refusal = [](const auto& train, const auto& saves, const Beside& with) {
    return thrown<NonFiniteScore>([&] { trainAndSave(train, saves, "--lr 1", with); });
  };
  const auto diverge = [] {
    const auto cause = std::make_exception_ptr(NonFiniteScore("the score became nan"));
    throw TrainingError("worker 0: the score became nan", 0, cause);
  };
  const std::string with = "; this was with --lr 1, and ",
                    kept = with + "the network is saved as " + other + " instead of " + beside.file.string();
  CHECK(refusal(diverge, save, beside) == "worker 0: the score became nan" + kept);
  CHECK(saved.size() == 2);
  CHECK(test::readFile(other) == "doubtful");
  std::filesystem::remove(other);
  CHECK(refusal([] {}, doubts, beside) == "diverged" + kept);
  CHECK(test::readFile(other) == "doubtful");
  CHECK_FALSE(std::filesystem::exists(beside.file));

  const Beside untrained{beside.file, [](const auto&) { return false; }};
  for (const auto& none : {Beside{}, untrained})
    CHECK(refusal([] {}, doubts, none) == "diverged" + with + "nothing was saved");
  const Beside broken{beside.file, [](const std::filesystem::path&) -> bool { throw Error("it broke"); }};
  CHECK(refusal([] {}, doubts, broken) == "diverged" + with + "the network could not be saved: it broke");
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
  const test::TemporaryDirectory directory, temporary, home;
  const auto file = directory / "m.safetensors";
  const auto refused = [&](const std::filesystem::path& path, const std::filesystem::path& writable) {
    return thrown<Error>([&] {
      writeHereOrElsewhere(path, [&](const std::filesystem::path& to) {
        if (to.parent_path() != writable) throw FileError(to, "disk full");
        test::writeFile(to, "the network");
      });
    });
  };
  const std::string full = file.string() + ": disk full";
  {
    const test::Environment environment("TMPDIR", temporary.path().string());
    CHECK(refused("m", "/none") == "m: disk full");
    const auto error = refused(file, temporary.path());
    REQUIRE(temporary.names().size() == 1);
    const auto there = temporary.path() / *temporary.names().begin();
    CHECK(error == full + "; saved as " + there.string() + " instead");
    CHECK(readFile(there) == "the network");
  }
  const test::Environment atHome("HOME", home.path().string()), nowhere("TMPDIR", "/nonexistent");
  CHECK(refused(file, home.path()).starts_with(full + "; saved as " + home.path().string() + "/m-"));
  CHECK(refused(file, temporary.path()) == full);
}

}  // namespace
}  // namespace muster::detail
