#include "muster/core/io/detail/safetensors_header.h"

#include <doctest/doctest.h>

#include "muster/core/base/error.h"
#include "muster/core/io/detail/safetensors_dtype.h"
#include "tests/support/thrown.h"

namespace muster {
namespace {

using detail::parseSafetensorsHeader;

std::string refusal(std::string_view text, std::uint64_t bytes) {
  const std::string all = test::thrown<FileError>([&] { parseSafetensorsHeader(text, bytes, "m"); });
  const std::size_t begin = all.find(": ");
  return all.empty() ? "" : all.substr(begin == std::string::npos ? 0 : begin + 2);
}

TEST_CASE("tensors are sorted by their place in the file; metadata are strings") {
  const auto header = parseSafetensorsHeader(
      R"({"b": {"dtype": "F32", "shape": [2, 1], "data_offsets": [8, 16]},
          "none": {"dtype": "I64", "shape": [0, 3], "data_offsets": [8, 8]},
          "a": {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]},
          "__metadata__": {"format": "pt"}})",
      16, "m");
  REQUIRE(header.tensors.size() == 3);
  CHECK(header.tensors[0].name == "a");
  CHECK(header.tensors[0].type == "BF16");
  CHECK((header.tensors[0].dtype == DType::Float32));
  CHECK(header.tensors[1].name == "none");
  CHECK(header.tensors[2].name == "b");
  CHECK(header.tensors[2].shape == Shape{2, 1});
  CHECK(header.tensors[2].end == 16);
  CHECK(header.metadata.at("format") == "pt");
}

TEST_CASE("headers that are refused") {
  struct Row {
    const char* text;
    std::uint64_t bytes;
    const char* says;
  };
  for (const Row& row : {
           Row{"[]", 0, "the header is not a JSON object"},
           Row{"{", 0, "the header is "},
           Row{R"({"__metadata__": 1})", 0, "__metadata__ is not an object of strings"},
           Row{R"({"__metadata__": {"a": 1}})", 0, "__metadata__ \"a\" is not a string"},
           Row{R"({"a": 1})", 0, "tensor \"a\": expected an object"},
           Row{R"({"a": {"dtype": "F32", "shape": [], "data_offsets": [0, 4], "more": 1}})", 4,
               "tensor \"a\": there is no field \"more\""},
           Row{R"({"a": {"shape": [], "data_offsets": [0, 4]}})", 4, "tensor \"a\": has no dtype"},
           Row{R"({"a": {"dtype": "BOOL", "shape": [4], "data_offsets": [0, 4]}})", 4,
               "tensor \"a\": cannot read element type \"BOOL\""},
           Row{R"({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}})", 4,
               "tensor \"a\": its shape is not an array of whole numbers"},
           Row{R"({"a": {"dtype": "F32", "shape": [1.0], "data_offsets": [0, 4]}})", 4,
               "tensor \"a\": its shape is not an array of whole numbers"},
           Row{R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}})", 4,
               "tensor \"a\": its data_offsets are not two whole numbers in order"},
           Row{R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0]}})", 4,
               "tensor \"a\": its data_offsets are not two whole numbers in order"},
           Row{R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}})", 4,
               "tensor \"a\": its data_offsets span 4 bytes, which is not what F32 [2] takes"},
           Row{R"({"a": {"dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 0]}})", 0,
               "tensor \"a\": its data_offsets span 0 bytes"},
           Row{R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})", 3,
               "tensor \"a\": its data end at byte 4, but the file has only 3 (was it cut off?)"},
           Row{R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})", 9,
               "it has 5 bytes after the last tensor"},
           Row{R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})", 8,
               "tensor \"a\": there is a gap of 4 bytes before its data"},
           Row{R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                   "b": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})",
               8, "tensor \"b\": its data begin at byte 4, inside those of another tensor"},
       }) {
    CAPTURE(row.text);
    CHECK(refusal(row.text, row.bytes).find(row.says) != std::string::npos);
  }
}

TEST_CASE("a tensor of a type that cannot be read is listed if it may be skipped") {
  const auto header = parseSafetensorsHeader(
      R"({"mask": {"dtype": "BOOL", "shape": [3], "data_offsets": [0, 3]}})", 3, "m", OtherTypes::Skip);
  REQUIRE(header.tensors.size() == 1);
  CHECK(header.tensors[0].type == "BOOL");
}

TEST_CASE("names of element types in files") {
  for (const auto& [dtype, name] : detail::kSafetensorsDTypes) {
    CHECK((detail::safetensorsName(dtype) == name));
    CHECK((detail::safetensorsDType(name) == dtype));
  }
  for (const auto name : {"F16", "BF16"}) CHECK((detail::safetensorsDType(name) == DType::Float32));
  for (const auto name : {"", "f32", "F8_E4M3", "I32", "BOOL"})
    CHECK_FALSE(detail::safetensorsDType(name).has_value());
}

}  // namespace
}  // namespace muster
