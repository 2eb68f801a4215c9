#include "muster/core/io/atomic_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/child_process.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

using Names = std::set<std::string>;

TEST_CASE("a file is created or replaced, also by a relative path, and no other file is left beside it") {
  const TemporaryDirectory directory;
  const auto path = directory / "a.txt", before = std::filesystem::current_path();
  for (const char* text : {"first", "second, longer", ""}) {
    writeFileAtomically(path, text);
    CHECK(readFile(path) == text);
  }
  std::filesystem::current_path(directory.path());
  writeFileAtomically("a.txt", "x");
  std::filesystem::current_path(before);
  CHECK(readFile(path) == "x");
  CHECK(directory.names() == Names{"a.txt"});
}

TEST_CASE("the old file stays until commit(), and without commit() nothing changes") {
  const TemporaryDirectory directory;
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
  const TemporaryDirectory directory;
  const auto left = directory / ".a.txt.123.0.tmp", other = directory / ".b.txt.123.7.tmp";
  for (const auto& path : {left, other, directory / ".a.txt.notes.tmp", directory / ".a.txt.1.tmp"})
    writeFile(path, "part");
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
  const TemporaryDirectory directory;
  AtomicFile one(directory / "a.txt"), two(directory / "a.txt");
  one.write("one");
  two.write("two");
  one.commit();
  two.commit();
  CHECK(readFile(directory / "a.txt") == "two");
  CHECK(directory.names() == Names{"a.txt"});
}

TEST_CASE("symbolic links are followed and permissions kept") {
  const TemporaryDirectory directory;
  const auto target = directory / "there/a.txt";
  std::filesystem::create_directory(directory / "there");
  writeFileAtomically(target, "old");
  ::chmod(target.c_str(), 0640);
  for (const std::string file : {"there/a.txt", "there/b.txt", "nowhere/c.txt"}) {  // the others dangle
    CAPTURE(file);
    const auto link = directory / file.substr(file.size() - 5);
    std::filesystem::create_symlink(file, link);
    if (file.starts_with("there")) {
      writeFileAtomically(link, "new");
      CHECK(readFile(directory / file) == "new");
    } else {
      CHECK_THROWS_AS(writeFileAtomically(link, "new"), FileError);
    }
    CHECK(std::filesystem::is_symlink(link));
  }
  CHECK((std::filesystem::status(target).permissions() == std::filesystem::perms(0640)));
}

TEST_CASE("links of other users in a directory where everybody may make links are refused") {
  if (::geteuid() != 0) return;  // needs another user's link
  const TemporaryDirectory directory;
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
  const TemporaryDirectory directory;
  const auto refused = [](const std::filesystem::path& path, const std::string& name, const char* cause) {
    CHECK(thrown<FileError>([&] { writeFileAtomically(path, "x"); }) ==
          name + ": cannot be written: " + cause);
  };
  const auto missing = directory / "missing/a.txt";
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  const auto end = "/dev/fd/" + std::to_string(pipe[1]);  // a link to no file, as /dev/stdout before a pipe
  refused(missing, missing.string(), "No such file or directory");
  refused(directory.path(), directory.path().string(), "Is a directory");
  refused("/dev/null", "/dev/null", "it is not a regular file");
  refused(end, end, "it is not a regular file");
  refused("", "a file without a name", "No such file or directory");
  for (const int one : pipe) ::close(one);
}

TEST_CASE("files of a killed process are removed also if their names are as long as the file system allows") {
  const TemporaryDirectory directory;
  for (const std::size_t length : {220, 221, 240, 255}) {
    CAPTURE(length);
    const std::string name(length, 'x');
    dyingWords([&] {
      AtomicFile file(directory / name);
      std::abort();
    });
    CHECK(directory.names().size() == 1);
    writeFileAtomically(directory / name, "whole");
    CHECK(readFile(directory / name) == "whole");
    CHECK(directory.names() == Names{name});
    std::filesystem::remove(directory / name);
  }
}

TEST_CASE("a full disk leaves the old file and no other file") {
  const TemporaryDirectory directory;
  const auto path = directory / "a.txt";
  writeFileAtomically(path, "old");
  const std::string text = inChild([&] {
    limitFileSize(10000);
    return thrown<FileError>([&] { writeFileAtomically(path, std::string(20000, 'x')); });
  });
  CHECK(text == path.string() + ": could not be written: File too large");
  CHECK(readFile(path) == "old");
  CHECK(directory.names() == Names{"a.txt"});
}

TEST_CASE("read-only directories and files are refused") {
  const TemporaryDirectory directory;
  const auto path = directory / "a.txt";
  writeFileAtomically(path, "old");
  const auto asNobody = [&](mode_t directoryMode, mode_t fileMode) {
    ::chmod(directory.path().c_str(), directoryMode);
    ::chmod(path.c_str(), fileMode);
    const std::string text = inChild([&]() -> std::string {
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

}  // namespace
}  // namespace muster::test
