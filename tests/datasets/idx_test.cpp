#include "muster/datasets/idx.h"

#include "tests/datasets/gzip.h"
#include "tests/datasets/idx_bytes.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using test::idx;
using test::idxHead;
using test::thrown;

/// A directory with a file of these bytes.
struct IdxFile : test::TemporaryDirectory {
  explicit IdxFile(const std::string& bytes) { test::writeFile(file, bytes); }
  Tensor read() const { return readIdx(file); }
  const std::filesystem::path file = path() / "some.idx";
};

std::string idxRefusal(const std::string& bytes) {
  const IdxFile written(bytes);
  const auto text = thrown<FileError>([&] { written.read(); });
  if (!text.empty()) CHECK_CONTAINS(text, written.file.string());
  return text;
}

TEST_CASE("IDX files of bytes, floats and doubles are read, plain and compressed, also without elements") {
  const auto bytes = idx({2, 1, 3}, std::string("\x01\x02\x03\x04\x05\xFF"));
  for (const auto& written : {bytes, test::gzip(bytes)}) {
    const Tensor tensor = IdxFile(written).read();
    CHECK(tensor.shape() == Shape{2, 1, 3});
    CHECK(std::ranges::equal(tensor.span<std::uint8_t>(), std::array{1, 2, 3, 4, 5, 255}));
  }
  // IEEE 754, big-endian: 1.0f is 3f800000, -2.5f is c0200000; 1.0 is 3ff0000000000000.
  const Tensor floats = IdxFile(idxHead(0x0D, {2}) + std::string("\x3f\x80\0\0\xc0\x20\0\0", 8)).read();
  CHECK(std::ranges::equal(floats.span<float>(), std::array{1.0f, -2.5f}));
  const Tensor doubles = IdxFile(idxHead(0x0E, {1}) + std::string("\x3f\xf0\0\0\0\0\0\0", 8)).read();
  CHECK(doubles.data<double>()[0] == 1.0);
  CHECK(IdxFile(idx({0, 28, 28}, "")).read().shape() == Shape{0, 28, 28});
}

TEST_CASE("a file that is truncated or too long is refused, and the error names both sizes") {
  for (const auto& [bytes, parts] :
       {std::pair(idx({3, 2}, "12345"), std::array{"truncated", "[3, 2]", "6 bytes, but 5"}),
        {idx({3}, "12345"), {"over-long", "[3]", "3 bytes, but 5"}}})
    for (const char* part : parts) CHECK_CONTAINS(idxRefusal(bytes), part);
  const auto bytes = idx({3, 2}, "123456");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(idxRefusal(bytes.substr(0, size)).empty());
  }
}

TEST_CASE("sizes whose product overflows, and an unexpected magic number, type or rank are refused") {
  constexpr std::uint32_t huge = 0xFFFFFFFFu;
  CHECK_CONTAINS(idxRefusal(idx({huge, huge, huge, huge}, "12345")), "truncated");
  CHECK_CONTAINS(idxRefusal(idx({1u << 31, 1u << 31, 4}, "")), "truncated");  // 2^64
  // Files without elements but with impossible image sizes; found by fuzzing.
  CHECK_CONTAINS(idxRefusal(idx({0, huge, huge}, "")),
                 "[0, 4294967295, 4294967295], which is too large for any memory");
  CHECK_CONTAINS(idxRefusal("\x89PNG and more"), "0x89504e47");
  CHECK_CONTAINS(idxRefusal(std::string("\0\x01\x08\x01\0\0\0\0", 8)), "0x00010801");
  CHECK_CONTAINS(idxRefusal(idxHead(0x0C, {1}) + "1234"), "0x0c");
  CHECK_CONTAINS(idxRefusal(idx({}, "")), "0 dimensions");
  CHECK_CONTAINS(idxRefusal(idx({1, 1, 1, 1, 1, 1, 1}, "1")), "7 dimensions");
}

}  // namespace
}  // namespace muster
