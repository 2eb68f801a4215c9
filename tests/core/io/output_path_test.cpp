#include "muster/core/io/output_path.h"

#include <doctest/doctest.h>

#include <fstream>

#include "muster/core/base/error.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"

namespace muster {

TEST_CASE("a file that cannot be written is refused with its cause, and nothing is made") {
  const test::TemporaryDirectory directory;
  const auto at = [&](const char* name) { return directory.path() / name; };
  const auto refusal = [](const std::filesystem::path& path) {
    return test::thrown<FileError>([&] { checkOutputFile(path); });
  };
  CHECK_NOTHROW(checkOutputFile({}));
  CHECK_NOTHROW(checkOutputFile(at("model")));
  CHECK_FALSE(std::filesystem::exists(at("model")));
  CHECK(refusal(directory.path()) == directory.path().string() + ": cannot be written: it is a directory");
  CHECK(refusal(at("missing") / "model")
            .ends_with(": cannot be written: its directory: No such file or directory"));
}

TEST_CASE("a directory that cannot be made is refused, and one that can is not made yet") {
  const test::TemporaryDirectory directory;
  CHECK_NOTHROW(checkOutputDirectory({}));
  CHECK_NOTHROW(checkOutputDirectory(directory.path()));
  CHECK_NOTHROW(checkOutputDirectory(directory.path() / "a" / "b"));
  CHECK_FALSE(std::filesystem::exists(directory.path() / "a"));
  const auto file = directory.path() / "file";
  std::ofstream(file) << "text";
  const auto refusal = test::thrown<FileError>([&] { checkOutputDirectory(file / "b"); });
  CHECK(refusal == (file / "b").string() + ": cannot be made: " + file.string() + ": Not a directory");
}

}  // namespace muster
