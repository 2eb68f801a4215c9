#include "muster/datasets/file_bytes.h"

#include "tests/datasets/gzip.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using test::bytesOf;
using test::gzip;
using test::thrown;

/// Text that deflate compresses moderately.
std::string sample() {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += std::to_string(i * i % 977);
  return text;
}

std::string refusal(const std::string& packed) {
  return thrown<FileError>([&] { unpackGzip(bytesOf(packed), "some/file.gz"); });
}

TEST_CASE("readFile returns all bytes of a file, and names one that cannot be read") {
  const test::TemporaryDirectory directory;
  for (const auto& bytes : {std::string("x\0y\n", 4), std::string()}) {
    test::writeFile(directory / "a", bytes);
    CHECK(readFile(directory / "a") == bytesOf(bytes));
  }
  CHECK(thrown<FileError>([&] { readFile(directory / "missing"); }) ==
        (directory / "missing").string() + ": cannot be read: No such file or directory");
  CHECK_THROWS_AS(readFile(directory.path()), FileError);
}

TEST_CASE("gzip is recognised by its bytes and decompressed") {
  const auto text = sample();
  CHECK(isGzip(bytesOf(gzip(text))));
  CHECK_FALSE(isGzip(bytesOf(text)));
  CHECK_FALSE(isGzip(bytesOf("\x1F")));
  CHECK(unpackGzip(bytesOf(gzip(text)), "f") == bytesOf(text));
  CHECK(unpackGzip(bytesOf(gzip("")), "f").empty());
  CHECK(unpackGzip(bytesOf(gzip("one ") + gzip("two")), "f") == bytesOf("one two"));
}

TEST_CASE("a gzip file that is truncated anywhere, has a damaged byte or bytes after its end is refused") {
  const auto packed = gzip(sample());
  for (std::size_t size = 0; size < packed.size(); ++size) {
    CAPTURE(size);
    REQUIRE(test::contains(refusal(packed.substr(0, size)), "some/file.gz"));
  }
  for (const auto size : {packed.size() / 2, packed.size() - 1})
    CHECK_CONTAINS(refusal(packed.substr(0, size)), "truncated");
  auto damaged = packed;
  damaged[packed.size() - 6] ^= 1;  // in the checksum
  CHECK_CONTAINS(refusal(damaged), "checksum");
  damaged = packed;
  damaged[packed.size() / 2] ^= 0x55;
  CHECK_FALSE(refusal(damaged).empty());
  CHECK_CONTAINS(refusal(packed + "more"), "some/file.gz");
}

TEST_CASE("a gzip file that expands to more than allowed is refused, and a wrong size reserves no memory") {
  const auto packed = bytesOf(gzip(std::string(1000, 'x')));
  CHECK(unpackGzip(packed, "f", 1000).size() == 1000);
  CHECK(thrown<FileError>([&] { unpackGzip(packed, "some/file.gz", 999); }) ==
        "some/file.gz: unpacks to more than 999 bytes, the most that is read from a gzip file; unpack it "
        "first");
  auto wrong = gzip("abc");
  for (std::size_t i = wrong.size() - 4; i < wrong.size(); ++i) wrong[i] = '\xFF';  // 4 GiB
  std::vector<std::uint8_t> contents;
  try {
    contents = unpackGzip(bytesOf(wrong), "f");
  } catch (const FileError&) {
  }
  CHECK(contents.capacity() < 1'000'000);
}

TEST_CASE("readContents decompresses by content, whatever the file's name") {
  const test::TemporaryDirectory directory;
  test::writeFile(directory / "plain.gz", "plain");
  test::writeFile(directory / "packed", gzip("packed"));
  CHECK(readContents(directory / "plain.gz").bytes == bytesOf("plain"));
  const auto packed = readContents(directory / "packed");
  CHECK(packed.bytes == bytesOf("packed"));
  CHECK(packed.path == directory / "packed");
}

}  // namespace
}  // namespace muster
