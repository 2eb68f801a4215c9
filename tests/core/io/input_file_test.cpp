#include "muster/core/io/input_file.h"

#include <sys/stat.h>

#include "tests/support/test.h"

namespace muster::test {
namespace {

TEST_CASE("a regular file is read in pieces, and not past its end") {
  const TemporaryDirectory directory;
  const auto path = directory / "file";
  writeFile(path, "abcdef");
  InputFile file(path);
  CHECK(file.path() == path);
  REQUIRE(file.size() == 6);
  std::string text(4, '?');
  file.read(text.data(), 4);
  CHECK(text == "abcd");
  CHECK(thrown<FileError>([&] { file.read(text.data(), 3); }) == path.string() + ": ended while it was read");
}

TEST_CASE("the type of a path that cannot be reached is an error that names it") {
  const TemporaryDirectory directory;
  CHECK(fileTypeOf(directory.path()) == std::filesystem::file_type::directory);
  CHECK(fileTypeOf(directory / "missing") == std::filesystem::file_type::not_found);
  const auto tooLong = directory / std::string(256, 'x');
  CHECK(thrown<FileError>([&] { fileTypeOf(tooLong); }) ==
        tooLong.string() + ": cannot be read: File name too long");
}

TEST_CASE("a path that is not a regular file is refused at once") {
  const TemporaryDirectory directory;
  const auto pipe = directory / "pipe";  // nobody writes into it
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const auto& [path, why] : {std::pair(pipe, "it is not a regular file"),
                                  {"/dev/zero", "it is not a regular file"},
                                  {directory.path(), "it is a directory"},
                                  {directory / "missing", "No such file or directory"}})
    CHECK(thrown<FileError>([&] { InputFile{path}; }) == path.string() + ": cannot be read: " + why);
}

}  // namespace
}  // namespace muster::test
