#include "muster/datasets/idx.h"

#include "tests/datasets/gzip.h"
#include "tests/datasets/idx_bytes.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using test::contains;
using test::idx;
using test::idxHead;
using test::thrown;

class IdxFile {
 public:
  explicit IdxFile(const std::string& bytes) { test::writeFile(path(), bytes); }
  std::filesystem::path path() const { return directory_ / "some.idx"; }

 private:
  test::TemporaryDirectory directory_;
};

std::string refusal(const std::string& bytes) {
  const IdxFile file(bytes);
  const auto text = thrown<FileError>([&] { readIdx(file.path()); });
  if (!text.empty()) CHECK_CONTAINS(text, file.path().string());
  return text;
}

TEST_CASE("IDX files of bytes are read, plain and compressed") {
  const auto bytes = idx({2, 1, 3}, std::string("\x01\x02\x03\x04\x05\xFF"));
  for (const auto& written : {bytes, test::gzip(bytes)}) {
    const IdxFile file(written);
    const Tensor tensor = readIdx(file.path());
    CHECK(tensor.shape() == Shape{2, 1, 3});
    CHECK(std::ranges::equal(tensor.span<std::uint8_t>(), std::vector<int>{1, 2, 3, 4, 5, 255}));
  }
}

TEST_CASE("floats and doubles in IDX files are big-endian") {
  // IEEE 754: 1.0f is 3f800000, -2.5f is c0200000; 1.0 is 3ff0000000000000.
  const IdxFile floats(idxHead(0x0D, {2}) + std::string("\x3f\x80\0\0\xc0\x20\0\0", 8));
  CHECK(std::ranges::equal(readIdx(floats.path()).span<float>(), std::vector<float>{1.0f, -2.5f}));
  const IdxFile doubles(idxHead(0x0E, {1}) + std::string("\x3f\xf0\0\0\0\0\0\0", 8));
  CHECK(readIdx(doubles.path()).data<double>()[0] == 1.0);
}

TEST_CASE("an IDX file without elements gives a tensor without elements") {
  const IdxFile file(idx({0, 28, 28}, ""));
  CHECK(readIdx(file.path()).shape() == Shape{0, 28, 28});
}

TEST_CASE("a truncated file is refused, and the error names both sizes") {
  const auto data = refusal(idx({3, 2}, "12345"));
  CHECK_CONTAINS(data, "truncated");
  CHECK_CONTAINS(data, "[3, 2]");
  CHECK_CONTAINS(data, "6 bytes, but 5");
  const auto bytes = idx({3, 2}, "123456");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(refusal(bytes.substr(0, size)).empty());
  }
}

TEST_CASE("a file that is too long is refused, and the error names both sizes") {
  const auto text = refusal(idx({3}, "12345"));
  CHECK_CONTAINS(text, "over-long");
  CHECK_CONTAINS(text, "3 bytes, but 5");
}

TEST_CASE("sizes whose product overflows are refused") {
  constexpr std::uint32_t huge = 0xFFFFFFFFu;
  CHECK_CONTAINS(refusal(idx({huge, huge, huge, huge}, "12345")), "truncated");
  CHECK_CONTAINS(refusal(idx({1u << 31, 1u << 31, 4}, "")), "truncated");  // 2^64
  // Files without elements but with impossible image sizes; found by fuzzing.
  CHECK_CONTAINS(refusal(idx({0, huge, huge}, "")),
                 "[0, 4294967295, 4294967295], which is too large for any memory");
  CHECK(refusal(idx({0, 28, 28}, "")).empty());
}

TEST_CASE("an unexpected magic number, type or rank is refused") {
  CHECK_CONTAINS(refusal("\x89PNG and more"), "0x89504e47");
  CHECK_CONTAINS(refusal(std::string("\0\x01\x08\x01\0\0\0\0", 8)), "0x00010801");
  CHECK_CONTAINS(refusal(idxHead(0x0C, {1}) + "1234"), "0x0c");
  CHECK_CONTAINS(refusal(idx({}, "")), "0 dimensions");
  CHECK_CONTAINS(refusal(idx({1, 1, 1, 1, 1, 1, 1}, "1")), "7 dimensions");
}

}  // namespace
}  // namespace muster
