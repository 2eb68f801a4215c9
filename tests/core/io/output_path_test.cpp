#include "muster/core/io/output_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "tests/support/child_process.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

namespace muster {

TEST_CASE("a file that cannot be written is refused with its cause, and nothing is created") {
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
  CHECK(refusal("/dev/null/model")
            .ends_with("/dev/null/model: cannot be written: its directory: Not a directory"));
  CHECK(refusal("/dev/null") == "/dev/null: cannot be written: it is not a regular file");
  CHECK(refusal(at(std::string(256, 'x').c_str())).ends_with(": cannot be written: File name too long"));
  CHECK_NOTHROW(checkOutputFile(at(std::string(250, 'x').c_str())));
  CHECK(directory.names().empty());
}

TEST_CASE("a full disk and a read-only file are detected, and existing files stay unchanged") {
  const test::TemporaryDirectory directory;
  const auto path = directory / "model";
  test::writeFile(path, "mine");
  const auto refusedIn = [&](const std::function<bool()>& change) {
    return test::inChild([&]() -> std::string {
      if (!change()) return "cannot be tried";
      return test::thrown<FileError>([&] { checkOutputFile(path); });
    });
  };
  CHECK(refusedIn([] { return test::limitFileSize(100), true; }) ==
        path.string() + ": could not be written: File too large");
  ::chmod(path.c_str(), 0444);
  ::chmod(directory.path().c_str(), 0777);
  // Root may write everywhere, so try as an unprivileged user.
  CHECK(refusedIn([] { return ::geteuid() != 0 || ::seteuid(65534) == 0; }) ==
        path.string() + ": cannot be written: Permission denied");
  CHECK(test::readFile(path) == "mine");
  CHECK(directory.names() == std::set<std::string>{"model"});
}

TEST_CASE("a process that is ended while it checks a path leaves nothing there") {
  const test::TemporaryDirectory directory;
  const auto endedBy = [](const std::function<void()>& check) {
    test::dyingWords([&] {
      test::limitFileSize(100);
      std::signal(SIGXFSZ, [](int) { std::abort(); });  // when the first page is written
      check();
    });
  };
  endedBy([&] { checkOutputFile(directory / "model"); });
  endedBy([&] { checkOutputDirectory(directory / "checkpoints"); });
  endedBy([&] { checkOutputDirectory(directory.path()); });
  CHECK(directory.names().empty());
}

TEST_CASE("two paths count as the same if they lead to one file") {
  const test::TemporaryDirectory directory;
  const auto a = directory / "a", b = directory / "b", missing = directory / "missing";
  test::writeFile(a, "text");
  test::writeFile(b, "text");
  std::filesystem::create_symlink("a", directory / "symbolic");
  std::filesystem::create_hard_link(a, directory / "hard");
  std::filesystem::create_directory_symlink(".", directory / "here");
  CHECK(isSameFile(a, a));
  CHECK(isSameFile(a, directory.path() / "." / ".." / directory.path().filename() / "a"));
  CHECK(isSameFile(a, directory / "symbolic"));
  CHECK(isSameFile(directory / "hard", a));
  CHECK(isSameFile(a, directory.path() / "here" / "a"));
  CHECK(isSameFile(missing, directory.path() / "here" / "missing"));
  CHECK(isSameFile(std::filesystem::relative(missing), missing));
  std::filesystem::create_symlink("missing", directory / "dangling");
  std::filesystem::create_symlink("dangling", directory / "dangling too");
  CHECK(isSameFile(missing, directory / "dangling"));
  CHECK(isSameFile(directory / "dangling too", missing));
  CHECK_FALSE(isSameFile(a, b));
  CHECK_FALSE(isSameFile(a, missing));
  CHECK_FALSE(isSameFile("", ""));

  CHECK(isInside(a, directory.path()));
  CHECK(isInside(missing / "deep", directory.path() / "here" / "missing"));
  CHECK(isInside(missing, missing.string() + "/"));
  CHECK_FALSE(isInside(directory / "missing2", missing));
  CHECK_FALSE(isInside(directory.path(), a));
}

TEST_CASE("a directory that cannot be created is refused, and one that can is not created yet") {
  const test::TemporaryDirectory directory;
  CHECK_NOTHROW(checkOutputDirectory({}));
  CHECK_NOTHROW(checkOutputDirectory(directory.path()));
  CHECK_NOTHROW(checkOutputDirectory(directory.path() / "a" / "b"));
  CHECK_FALSE(std::filesystem::exists(directory.path() / "a"));
  const auto file = directory.path() / "file";
  std::ofstream(file) << "text";
  const auto refusal = test::thrown<FileError>([&] { checkOutputDirectory(file / "b"); });
  CHECK(refusal == (file / "b").string() + ": cannot be made: " + file.string() + ": Not a directory");
  const auto tooLong = directory.path() / "a" / std::string(256, 'x') / "b";
  CHECK(test::thrown<FileError>([&] { checkOutputDirectory(tooLong); }) ==
        tooLong.string() + ": cannot be made: " + directory.path().string() + ": File name too long");
  CHECK_NOTHROW(checkOutputDirectory(directory.path() / std::string(255, 'x')));
  CHECK(test::inChild([&] {
          test::limitFileSize(100);
          return test::thrown<FileError>([&] { checkOutputDirectory(directory.path() / "a"); });
        }) == (directory.path() / "a").string() + ": cannot be made: " + directory.path().string() +
                  ": could not be written: File too large");
  CHECK(test::inChild([&] {
          test::limitFileSize(100);
          return test::thrown<FileError>([&] { checkOutputDirectory(directory.path()); });
        }) == directory.path().string() + ": a file in it could not be written: File too large");
  CHECK(directory.names() == std::set<std::string>{"file"});
}

}  // namespace muster
