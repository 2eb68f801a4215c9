#include "muster/core/io/detail/safetensors_header.h"

#include "muster/core/io/detail/safetensors_dtype.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

using muster::detail::parseSafetensorsHeader;

/// What is wrong with a header before so many bytes of data.
std::string refusal(std::string_view text, std::uint64_t bytes = 0) {
  const std::string all = thrown<FileError>([&] { parseSafetensorsHeader(text, bytes, "m"); });
  return all.starts_with("m: ") ? all.substr(3) : all;
}

/// What is wrong with the tensor "a" with these fields.
std::string refusalOf(const std::string& fields, std::uint64_t bytes = 4) {
  const std::string text = refusal("{\"a\": {" + fields + "}}", bytes), prefix = "tensor \"a\": ";
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}
std::string refusalOf(const char* shape, const char* offsets, std::uint64_t bytes = 4) {
  return refusalOf(fmt::format(R"("dtype": "F32", "shape": {}, "data_offsets": {})", shape, offsets), bytes);
}

TEST_CASE("tensors are sorted by their place in the file; metadata are strings") {
  const auto header = parseSafetensorsHeader(
      R"({"b": {"dtype": "F32", "shape": [2, 1], "data_offsets": [8, 16]},
          "none": {"dtype": "I64", "shape": [0, 3], "data_offsets": [8, 8]},
          "a": {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]},
          "__metadata__": {"format": "pt"}})",
      16, "m");
  std::string text;
  for (const auto& one : header.tensors)
    text += fmt::format("{} {} {} {}; ", one.name, one.type, one.shape.toString(), one.end);
  CHECK(text == "a BF16 [4] 8; none I64 [0, 3] 8; b F32 [2, 1] 16; ");
  CHECK((header.tensors[0].dtype == DType::Float32));
  CHECK(header.metadata.at("format") == "pt");
}

TEST_CASE("headers that are refused") {
  CHECK(refusal("{\"w\":").starts_with("the header is not valid JSON at line 1, column "));
  CHECK(refusal("[]") == "the header is not a JSON object but []");
  CHECK(refusal(R"({"w":3})") == "tensor \"w\": expected an object, found 3");
  CHECK_CONTAINS(refusal(R"({"w":{},"w":{}})"), "the key \"w\" is given twice");
  CHECK(refusal(R"({"__metadata__":{"a":1}})") == "__metadata__ \"a\" is not a string but 1");
  CHECK(refusal(R"({"__metadata__":[]})") == "__metadata__ is not an object of strings but []");
  const std::string shape = R"("shape": [1])", f32 = R"("dtype": "F32", )", at = R"("data_offsets": [0, 4])";
  const std::string noShape = "its shape is not an array of whole numbers",
                    noOffsets = "its data_offsets are not two whole numbers in order";
  CHECK(refusalOf(f32 + shape + ", " + at) == "");
  CHECK(refusalOf(f32 + shape + ", " + at + R"(, "more": 1)") == "there is no field \"more\"");
  CHECK(refusalOf(shape + ", " + at) == "has no dtype");
  CHECK(refusalOf(f32 + at) == noShape);
  CHECK(refusalOf(f32 + shape) == noOffsets);
  for (const char* type : {"BOOL", "I16"})
    CHECK(refusalOf(fmt::format(R"("dtype": "{}", "shape": [2], {})", type, at)) ==
          fmt::format("cannot read element type \"{}\", only F32, F64, F16, BF16, U8 and I64", type));
  for (const char* wrong : {"[-1]", "[1.0]", "1"}) CHECK(refusalOf(wrong, "[0, 4]") == noShape);
  CHECK(refusalOf("[1,1,1,1,1,1,1]", "[0, 4]") == "has 7 dimensions, at most 6 can be read");
  for (const char* wrong : {"[4, 0]", "[0]", "[0, 4, 4]"}) CHECK(refusalOf("[1]", wrong) == noOffsets);
  // 2^62 + 1 elements of 4 bytes are 2^64 + 4: a product that wraps round to 4.
  for (const std::string sizes : {"2", "4611686018427387905"})
    CHECK(refusalOf(("[" + sizes + "]").c_str(), "[0, 4]") ==
          "its data_offsets span 4 bytes, which is not what F32 [" + sizes + "] takes");
  CHECK(refusalOf("[4294967296, 4294967296]", "[0, 0]", 0).starts_with("its data_offsets span 0 bytes"));
  CHECK(refusalOf("[1]", "[0, 4]", 3) == "its data end at byte 4, but the file has only 3 (was it cut off?)");
  CHECK(refusalOf("[1]", "[0, 4]", 9) == "it has 5 bytes after the last tensor");
  CHECK(refusalOf("[1]", "[4, 8]", 8) == "there is a gap of 4 bytes before its data");
  CHECK(refusal(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                    "b": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})",
                8) == "tensor \"b\": its data begin at byte 4, inside those of another tensor");
}

TEST_CASE("a tensor of a type that cannot be read is listed if it may be skipped") {
  const auto header = parseSafetensorsHeader(
      R"({"mask": {"dtype": "BOOL", "shape": [3], "data_offsets": [0, 3]}})", 3, "m", OtherTypes::Skip);
  REQUIRE(header.tensors.size() == 1);
  CHECK(header.tensors[0].type == "BOOL");
}

TEST_CASE("names of element types in files") {
  for (const auto& [dtype, name] : muster::detail::kSafetensorsDTypes) {
    CHECK((muster::detail::safetensorsName(dtype) == name));
    CHECK((muster::detail::safetensorsDType(name) == dtype));
  }
  for (const auto name : {"F16", "BF16"}) CHECK((muster::detail::safetensorsDType(name) == DType::Float32));
  for (const auto name : {"", "f32", "F8_E4M3", "I32", "BOOL"})
    CHECK_FALSE(muster::detail::safetensorsDType(name).has_value());
}

}  // namespace
}  // namespace muster::test
