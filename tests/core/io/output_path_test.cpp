#include "muster/core/io/output_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "tests/support/child_process.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

/// What is said of a path, without its name at the beginning; "" if it can be written.
std::string refusal(const std::filesystem::path& path, void (*check)(const std::filesystem::path&)) {
  const auto text = thrown<FileError>([&] { check(path); });
  return text.starts_with(path.string() + ": ") ? text.substr(path.string().size() + 2) : text;
}
std::string refusedFile(const std::filesystem::path& path) {
  return refusal(path, &checkOutputFile);
}
std::string refusedDirectory(const std::filesystem::path& path) {
  return refusal(path, &checkOutputDirectory);
}

TEST_CASE("a file that cannot be written is refused with its cause, and nothing is created") {
  const TemporaryDirectory directory;
  for (const auto& good : {std::filesystem::path(), directory / "model", directory / std::string(250, 'x')})
    CHECK(refusedFile(good) == "");
  CHECK(refusedFile(directory.path()) == "cannot be written: it is a directory");
  CHECK(refusedFile(directory / "missing/model") ==
        "cannot be written: its directory: No such file or directory");
  CHECK(refusedFile("/dev/null/model") == "cannot be written: its directory: Not a directory");
  CHECK(refusedFile("/dev/null") == "cannot be written: it is not a regular file");
  CHECK(refusedFile(directory / std::string(256, 'x')) == "cannot be written: File name too long");
  CHECK(directory.names().empty());
}

TEST_CASE("a full disk and a read-only file are detected, and existing files stay unchanged") {
  const TemporaryDirectory directory;
  const auto path = directory / "model";
  writeFile(path, "mine");
  const auto refusedIn = [&](const std::function<bool()>& change) {
    return inChild([&]() -> std::string { return change() ? refusedFile(path) : "cannot be tried"; });
  };
  CHECK(refusedIn([] { return limitFileSize(100), true; }) == "could not be written: File too large");
  ::chmod(path.c_str(), 0444);
  ::chmod(directory.path().c_str(), 0777);
  // Root may write everywhere, so try as an unprivileged user.
  CHECK(refusedIn([] { return ::geteuid() != 0 || ::seteuid(65534) == 0; }) ==
        "cannot be written: Permission denied");
  CHECK(readFile(path) == "mine");
  CHECK(directory.names() == std::set<std::string>{"model"});
}

TEST_CASE("a process that is ended while it checks a path leaves nothing there") {
  const TemporaryDirectory directory;
  const auto endedBy = [](const std::function<void()>& check) {
    dyingWords([&] {
      limitFileSize(100);
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
  const TemporaryDirectory directory;
  const auto a = directory / "a", b = directory / "b", missing = directory / "missing";
  writeFile(a, "text");
  writeFile(b, "text");
  std::filesystem::create_symlink("a", directory / "symbolic");
  std::filesystem::create_hard_link(a, directory / "hard");
  std::filesystem::create_directory_symlink(".", directory / "here");
  std::filesystem::create_symlink("missing", directory / "dangling");
  std::filesystem::create_symlink("dangling", directory / "dangling too");
  for (const auto& same : {a, directory.path() / "." / ".." / directory.path().filename() / "a",
                           directory / "symbolic", directory / "hard", directory / "here/a"})
    CHECK((isSameFile(a, same) && isSameFile(same, a)));
  for (const auto& same : {directory / "here/missing", std::filesystem::relative(missing),
                           directory / "dangling", directory / "dangling too"})
    CHECK((isSameFile(missing, same) && isSameFile(same, missing)));
  for (const auto& other : {b, missing}) CHECK_FALSE(isSameFile(a, other));
  CHECK_FALSE(isSameFile("", ""));
  CHECK(isInside(a, directory.path()));
  CHECK(isInside(missing / "deep", directory / "here/missing"));
  CHECK(isInside(missing, missing.string() + "/"));
  CHECK_FALSE(isInside(directory / "missing2", missing));
  CHECK_FALSE(isInside(directory.path(), a));
}

TEST_CASE("a directory that cannot be created is refused, and one that can is not created yet") {
  const TemporaryDirectory directory;
  const auto a = directory / "a", file = directory / "file";
  for (const auto& good :
       {std::filesystem::path(), directory.path(), a / "b", directory / std::string(255, 'x')})
    CHECK(refusedDirectory(good) == "");
  writeFile(file, "text");
  CHECK(refusedDirectory(file / "b") == "cannot be made: " + file.string() + ": Not a directory");
  const auto above = directory.path().string();
  CHECK(refusedDirectory(a / std::string(256, 'x') / "b") ==
        "cannot be made: " + above + ": File name too long");
  const auto whenFull = [](const std::filesystem::path& path) {
    return inChild([&] {
      limitFileSize(100);
      return refusedDirectory(path);
    });
  };
  CHECK(whenFull(a) == "cannot be made: " + above + ": could not be written: File too large");
  CHECK(whenFull(directory.path()) == "a file in it could not be written: File too large");
  CHECK(directory.names() == std::set<std::string>{"file"});
}

}  // namespace
}  // namespace muster::test
