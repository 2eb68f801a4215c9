#include "muster/core/io/atomic_file.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/support/child_process.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using test::readFile;
using test::TemporaryDirectory;
using test::thrown;
using Names = std::set<std::string>;

}  // namespace

TEST_CASE("a file is created or replaced, and no other file is left beside it") {
  TemporaryDirectory directory;
  writeFileAtomically(directory / "a.txt", "first");
  CHECK(readFile(directory / "a.txt") == "first");
  writeFileAtomically(directory / "a.txt", "second, longer");
  CHECK(readFile(directory / "a.txt") == "second, longer");
  writeFileAtomically(directory / "a.txt", "");
  CHECK(readFile(directory / "a.txt").empty());
  CHECK(directory.names() == Names{"a.txt"});
}

TEST_CASE("a relative path without a directory works") {
  TemporaryDirectory directory;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  writeFileAtomically("plain.txt", "x");
  std::filesystem::current_path(before);
  CHECK(readFile(directory / "plain.txt") == "x");
}

TEST_CASE("the old file stays until commit(), and without commit() nothing changes") {
  TemporaryDirectory directory;
  writeFileAtomically(directory / "a.txt", "old");
  {
    AtomicFile file(directory / "a.txt");
    file.write("new");
    CHECK(readFile(directory / "a.txt") == "old");
    CHECK(directory.names().size() == 2);
  }
  CHECK(readFile(directory / "a.txt") == "old");
  CHECK(directory.names() == Names{"a.txt"});
}

TEST_CASE("the next writer removes files of a killed process, but not files still being written") {
  TemporaryDirectory directory;
  const auto left = directory / ".a.txt.123.0.tmp", other = directory / ".b.txt.123.7.tmp";
  for (const auto& path : {left, other, directory / ".a.txt.notes.tmp", directory / ".a.txt.1.tmp"})
    test::writeFile(path, "part");
  AtomicFile inProgress(directory / "a.txt");
  const auto names = directory.names();
  CHECK_FALSE(names.contains(".a.txt.123.0.tmp"));
  CHECK(names.size() == 4);
  writeFileAtomically(directory / "a.txt", "x");
  CHECK(directory.names().size() == 5);
  inProgress.write("y");
  inProgress.commit();
  CHECK(readFile(directory / "a.txt") == "y");
  removeAbandonedTemporaries(directory.path(), "b");
  CHECK(directory.names() == Names{".a.txt.1.tmp", ".a.txt.notes.tmp", "a.txt"});
  removeAbandonedTemporaries(directory / "missing", "b");  // treated like an empty directory
}

TEST_CASE("two writers of one path do not disturb each other") {
  TemporaryDirectory directory;
  AtomicFile one(directory / "a.txt"), two(directory / "a.txt");
  one.write("one");
  two.write("two");
  one.commit();
  two.commit();
  CHECK(readFile(directory / "a.txt") == "two");
  CHECK(directory.names() == Names{"a.txt"});
}

TEST_CASE("symbolic links are followed and permissions kept") {
  TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "there");
  writeFileAtomically(directory / "there/a.txt", "old");
  ::chmod((directory / "there/a.txt").c_str(), 0640);
  std::filesystem::create_symlink("there/a.txt", directory / "link");
  writeFileAtomically(directory / "link", "new");
  CHECK(std::filesystem::is_symlink(directory / "link"));
  CHECK(readFile(directory / "there/a.txt") == "new");
  struct stat status {};
  REQUIRE(::stat((directory / "there/a.txt").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0640);

  std::filesystem::create_symlink("there/b.txt", directory / "dangling");
  writeFileAtomically(directory / "dangling", "made");
  CHECK(std::filesystem::is_symlink(directory / "dangling"));
  CHECK(readFile(directory / "there/b.txt") == "made");
  std::filesystem::create_symlink("nowhere/c.txt", directory / "lost");
  CHECK_THROWS_AS(writeFileAtomically(directory / "lost", "text"), FileError);
  CHECK(std::filesystem::is_symlink(directory / "lost"));
}

TEST_CASE("links of other users in a directory where everybody may make links are refused") {
  if (::geteuid() != 0) return;  // needs another user's link
  TemporaryDirectory directory;
  const auto shared = directory / "shared";
  std::filesystem::create_directory(shared);
  ::chmod(shared.c_str(), 01777);
  writeFileAtomically(directory / "victim", "old");
  std::filesystem::create_symlink(directory / "victim", shared / "link");
  CHECK_NOTHROW(writeFileAtomically(shared / "link", "new"));  // our own link
  REQUIRE(::lchown((shared / "link").c_str(), 54321, 54321) == 0);
  CHECK_THROWS_AS(writeFileAtomically(shared / "link", "newer"), FileError);
  CHECK(readFile(directory / "victim") == "new");
}

TEST_CASE("an error about a path that cannot be written names the path and the cause") {
  TemporaryDirectory directory;
  const auto missing = directory / "missing/a.txt";
  CHECK(thrown<FileError>([&] { writeFileAtomically(missing, "x"); }) ==
        missing.string() + ": cannot be written: No such file or directory");
  CHECK(thrown<FileError>([&] { writeFileAtomically(directory.path(), "x"); }) ==
        directory.path().string() + ": cannot be written: Is a directory");
  CHECK(thrown<FileError>([] { writeFileAtomically("/dev/null", "x"); }) ==
        "/dev/null: cannot be written: it is not a regular file");
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  const auto end = "/dev/fd/" + std::to_string(pipe[1]);  // a link to no file, as /dev/stdout before a pipe
  CHECK(thrown<FileError>([&] { writeFileAtomically(end, "x"); }) ==
        end + ": cannot be written: it is not a regular file");
  for (const int one : pipe) ::close(one);
  CHECK(thrown<FileError>([] { writeFileAtomically("", "x"); }) ==
        "a file without a name: cannot be written: No such file or directory");
}

TEST_CASE("a name as long as the file system allows can be written") {
  TemporaryDirectory directory;
  const std::string name(255, 'x');
  writeFileAtomically(directory / name, "long");
  CHECK(readFile(directory / name) == "long");
  CHECK(directory.names() == Names{name});
}

TEST_CASE("files of a killed process are removed also if their names are long") {
  TemporaryDirectory directory;
  for (const std::size_t length : {220, 221, 240, 255}) {
    CAPTURE(length);
    const std::string name(length, 'x');
    const pid_t child = ::fork();
    if (child == 0) {
      AtomicFile file(directory / name);
      ::kill(::getpid(), SIGKILL);
    }
    REQUIRE(child > 0);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    CHECK(directory.names().size() == 1);
    writeFileAtomically(directory / name, "whole");
    CHECK(directory.names() == Names{name});
    std::filesystem::remove(directory / name);
    for (const auto& left : directory.names()) std::filesystem::remove(directory / left);
  }
}

TEST_CASE("a full disk leaves the old file and no other file") {
  TemporaryDirectory directory;
  const auto path = directory / "a.txt";
  writeFileAtomically(path, "old");
  const std::string text = test::inChild([&] {
    test::limitFileSize(10000);
    return thrown<FileError>([&] { writeFileAtomically(path, std::string(20000, 'x')); });
  });
  CHECK(text == path.string() + ": could not be written: File too large");
  CHECK(readFile(path) == "old");
  CHECK(directory.names() == Names{"a.txt"});
}

TEST_CASE("read-only directories and files are refused") {
  TemporaryDirectory directory;
  const auto path = directory / "a.txt";
  writeFileAtomically(path, "old");
  const auto asNobody = [&](mode_t directoryMode, mode_t fileMode) {
    ::chmod(directory.path().c_str(), directoryMode);
    ::chmod(path.c_str(), fileMode);
    const std::string text = test::inChild([&]() -> std::string {
      // Root may write everywhere, so try as an unprivileged user.
      if (::geteuid() == 0 && ::seteuid(65534) != 0) return "cannot become another user";
      return thrown<FileError>([&] { writeFileAtomically(path, "new"); });
    });
    ::chmod(directory.path().c_str(), 0755);
    return text;
  };
  CHECK(asNobody(0555, 0666) == path.string() + ": cannot be written: Permission denied");
  CHECK(asNobody(0777, 0444) == path.string() + ": cannot be written: Permission denied");
  CHECK(readFile(path) == "old");
  CHECK(directory.names() == Names{"a.txt"});
}

}  // namespace muster
