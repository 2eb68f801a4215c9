#include "muster/core/io/safetensors.h"

#include <fmt/format.h>

#include <numeric>

#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using test::readFile;
using test::TemporaryDirectory;
using test::thrown;
using test::writeFile;

/// A hand-made file: the header's length, the given header, the data.
std::string fileOf(const std::string& header, const std::string& data) {
  std::string length(8, '\0');
  for (int i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i));
  return length + header + data;
}

std::string problemOf(const std::string& bytes) {
  TemporaryDirectory directory;
  const auto path = directory / "f.safetensors";
  writeFile(path, bytes);
  const std::string text = thrown<FileError>([&] { readSafetensors(path); });
  const std::string prefix = path.string() + ": ";
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

std::string tensor(const std::string& name, const std::string& rest) {
  return "{\"" + name + "\":{" + rest + "}}";
}

}  // namespace

TEST_CASE("a small file has the expected bytes") {
  // 56 bytes of header: {"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}} has 54, and two spaces.
  const std::string golden = std::string("\x38\0\0\0\0\0\0\0", 8) +
                             R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  )" +
                             std::string("\0\0\x80\x3F\0\0\0\xC0", 8);  // 1.0f, -2.0f
  TemporaryDirectory directory;
  Safetensors contents;
  contents.add("w", Tensor::of({1, -2}, {2}));
  writeSafetensors(directory / "w.safetensors", contents);
  CHECK(readFile(directory / "w.safetensors") == golden);

  writeFile(directory / "golden.safetensors", golden);
  const Safetensors read = readSafetensors(directory / "golden.safetensors");
  REQUIRE(read.tensors.size() == 1);
  CHECK(read.metadata.empty());
  CHECK(read.tensors[0].name == "w");
  CHECK(read.tensors[0].values.shape() == Shape{2});
  CHECK(read.tensors[0].values.data<float>()[0] == 1);
  CHECK(read.tensors[0].values.data<float>()[1] == -2);
}

TEST_CASE("half precision is read as float32") {
  const auto read = [](const std::string& type, const std::string& data) {
    TemporaryDirectory directory;
    const auto path = directory / "h.safetensors";
    writeFile(path, fileOf(tensor("w", fmt::format(R"("dtype":"{}","shape":[{}],"data_offsets":[0,{}])", type,
                                                   data.size() / 2, data.size())),
                           data));
    const Safetensors file = readSafetensors(path);
    const auto values = file.tensors.at(0).values.span<float>();
    return std::vector<float>(values.begin(), values.end());
  };
  // 1, -2, the smallest subnormal, the largest subnormal, the smallest normal, the largest, -0, infinity
  const auto half =
      read("F16", std::string("\x00\x3C\x00\xC0\x01\x00\xFF\x03\x00\x04\xFF\x7B\x00\x80\x00\x7C", 16));
  CHECK(half == std::vector<float>{1, -2, 0x1p-24f, 1023 * 0x1p-24f, 0x1p-14f, 65504, 0, INFINITY});
  CHECK(std::signbit(half[6]));
  CHECK(std::isnan(read("F16", std::string("\x01\x7E", 2))[0]));
  CHECK(read("BF16", std::string("\x80\x3F\x40\xC0\x80\x7F", 6)) == std::vector<float>{1, -3, INFINITY});
}

TEST_CASE("tensors of other types are listed where they may be skipped") {
  TemporaryDirectory directory;
  const auto path = directory / "o.safetensors";
  writeFile(path, fileOf(R"({"flags":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]},)"
                         R"("w":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}})",
                         "abcd"));
  CHECK_FALSE(thrown<FileError>([&] { readSafetensors(path); }).empty());
  const Safetensors file = readSafetensors(path, OtherTypes::Skip);
  CHECK(file.others.at("flags") == "BOOL");
  REQUIRE(file.tensors.size() == 1);
  CHECK(file.tensors[0].values.data<std::uint8_t>()[0] == 'd');
}

TEST_CASE("all element types, scalars and empty tensors are read back, and larger elements come first") {
  TemporaryDirectory directory;
  Safetensors contents;
  Tensor bytes = Tensor::zeros({3}, DType::UInt8), doubles = Tensor::zeros({2, 2}, DType::Float64),
         scalar = Tensor::zeros({}, DType::Int64), nothing = Tensor::zeros({0, 4});
  std::iota(bytes.data<std::uint8_t>(), bytes.data<std::uint8_t>() + 3, 250);
  std::iota(doubles.data<double>(), doubles.data<double>() + 4, 0.1);
  scalar.data<std::int64_t>()[0] = -5;
  contents.add("bytes", bytes);
  contents.add("nothing", nothing);
  contents.add("odd", Tensor::of({1, 2, 3}, {3, 1}));
  contents.add("doubles", doubles);
  contents.add("scalar", scalar);
  contents.metadata = {{"format", "pt"}, {"text", "\"quoted\"\n"}};
  writeSafetensors(directory / "a", contents);

  const Safetensors read = readSafetensors(directory / "a");
  CHECK(read.metadata == contents.metadata);
  std::vector<std::string> order;
  for (const auto& [name, values] : read.tensors) {
    order.push_back(name);
    const Tensor* before = contents.find(name);
    REQUIRE(before != nullptr);
    CHECK(values.shape() == before->shape());
    REQUIRE((values.dtype() == before->dtype()));
    CHECK(std::memcmp(values.raw(), before->raw(), values.bytes()) == 0);
  }
  CHECK(order == std::vector<std::string>{"doubles", "scalar", "nothing", "odd", "bytes"});
  CHECK(read.find("absent") == nullptr);
}

TEST_CASE("a file without tensors is read back") {
  CHECK(problemOf(fileOf("{}", "")) == "");
  CHECK(problemOf(fileOf("{\"__metadata__\":{\"a\":\"b\"}}   ", "")) == "");
}

TEST_CASE("broken files are refused, and the error says what is wrong") {
  const std::string four(4, 'x'), eight(8, 'x');
  const auto f32 = [](const std::string& shape, const std::string& offsets) {
    return tensor("w", "\"dtype\":\"F32\",\"shape\":" + shape + ",\"data_offsets\":" + offsets);
  };
  CHECK(problemOf(fileOf(f32("[1]", "[0,4]"), four)) == "");
  CHECK(problemOf("") == "is not a safetensors file: 0 bytes are too short");
  CHECK(problemOf("1234567") == "is not a safetensors file: 7 bytes are too short");
  CHECK(problemOf(std::string("\x09\0\0\0\0\0\0\0{}", 10)) ==
        "is not a whole safetensors file: its header of 9 bytes does not fit a file of 10 bytes");
  CHECK(problemOf("{\"format\": 1}") == "is not a safetensors file, but JSON");
  CHECK(problemOf("label,x\n1,2\n") == "is not a safetensors file, but text");
  CHECK(problemOf("PK\x03\x04 and the rest") ==
        "is not a safetensors file, but a zip archive, as torch.save writes one");
  CHECK(problemOf(std::string("\x80\x02\x8a\x0al\xfc\x9c\x46", 8)) ==
        "is not a safetensors file, but a pickle, as older versions of torch.save write one");
  CHECK(problemOf("\x89HDF\r\n\x1a\n") == "is not a safetensors file, but HDF5, as Keras writes it");
  CHECK(problemOf("\x1f\x8b\x08 and the rest") == "is not a safetensors file, but packed by gzip");
  CHECK(problemOf("\x08\x07\x12\x04muster") == "is not a safetensors file, but probably an ONNX model");
  CHECK(problemOf(std::string("\x80\x02\0\0\0\0\0\0{}", 10)) ==  // begins like a pickle
        "is not a whole safetensors file: its header of 640 bytes does not fit a file of 10 bytes");
  CHECK_CONTAINS(problemOf(std::string(16, '\xFF')), "its header of 18446744073709551615 bytes");
  CHECK(problemOf(fileOf("{\"w\":", "")).starts_with("the header is not valid JSON at line 1, column "));
  CHECK(problemOf(fileOf("[]", "")) == "the header is not a JSON object but []");
  CHECK(problemOf(fileOf("{\"w\":3}", "")) == "tensor \"w\": expected an object, found 3");
  CHECK_CONTAINS(problemOf(fileOf("{\"w\":{},\"w\":{}}", "")), "the key \"w\" is given twice");
  CHECK(problemOf(fileOf("{\"__metadata__\":{\"a\":1}}", "")) == "__metadata__ \"a\" is not a string but 1");
  CHECK(problemOf(fileOf("{\"__metadata__\":[]}", "")) == "__metadata__ is not an object of strings but []");
  CHECK(problemOf(fileOf(tensor("w", "\"dtype\":\"I16\",\"shape\":[2],\"data_offsets\":[0,4]"), four)) ==
        "tensor \"w\": cannot read element type \"I16\", only F32, F64, F16, BF16, U8 and I64");
  CHECK(problemOf(fileOf(tensor("w", "\"shape\":[1],\"data_offsets\":[0,4]"), four)) ==
        "tensor \"w\": has no dtype");
  CHECK(problemOf(fileOf(tensor("w", "\"dtype\":\"F32\",\"data_offsets\":[0,4]"), four)) ==
        "tensor \"w\": its shape is not an array of whole numbers");
  CHECK(problemOf(fileOf(tensor("w", "\"dtype\":\"F32\",\"shape\":[1]"), four)) ==
        "tensor \"w\": its data_offsets are not two whole numbers in order");
  CHECK(problemOf(fileOf(tensor("w", "\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1"),
                         four)) == "tensor \"w\": there is no field \"x\"");
  CHECK(problemOf(fileOf(f32("[-1]", "[0,4]"), four)) ==
        "tensor \"w\": its shape is not an array of whole numbers");
  CHECK(problemOf(fileOf(f32("[1,1,1,1,1,1,1]", "[0,4]"), four)) ==
        "tensor \"w\": has 7 dimensions, at most 6 can be read");
  CHECK(problemOf(fileOf(f32("[1]", "[4,0]"), four)) ==
        "tensor \"w\": its data_offsets are not two whole numbers in order");
  CHECK(problemOf(fileOf(f32("[1]", "[0,4,4]"), four)) ==
        "tensor \"w\": its data_offsets are not two whole numbers in order");
  CHECK(problemOf(fileOf(f32("[3]", "[0,8]"), eight)) ==
        "tensor \"w\": its data_offsets span 8 bytes, which is not what F32 [3] takes");
  // 2^62 + 1 elements of 4 bytes are 2^64 + 4: a product that wraps round to 4.
  CHECK(problemOf(fileOf(f32("[4611686018427387905]", "[0,4]"), four)) ==
        "tensor \"w\": its data_offsets span 4 bytes, which is not what F32 [4611686018427387905] takes");
  CHECK(problemOf(fileOf(f32("[2]", "[0,8]"), four)) ==
        "tensor \"w\": its data end at byte 8, but the file has only 4 (was it cut off?)");
  CHECK(problemOf(fileOf(f32("[1]", "[4,8]"), eight)) ==
        "tensor \"w\": there is a gap of 4 bytes before its data");
  CHECK(problemOf(fileOf(f32("[1]", "[0,4]"), eight)) == "it has 4 bytes after the last tensor");
  CHECK(problemOf(fileOf("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":"
                         "\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}",
                         eight)) == "tensor \"b\": its data begin at byte 2, inside those of another tensor");
}

TEST_CASE("a missing file and a directory are refused by name") {
  TemporaryDirectory directory;
  const auto missing = directory / "missing";
  CHECK(thrown<FileError>([&] { readSafetensors(missing); }) ==
        missing.string() + ": cannot be read: No such file or directory");
  CHECK(thrown<FileError>([&] { readSafetensors(directory.path()); }) ==
        directory.path().string() + ": cannot be read: it is a directory");
}

TEST_CASE("every truncation and every flipped byte gives an error or a valid file") {
  TemporaryDirectory directory;
  Safetensors contents;
  contents.metadata = {{"k", "v"}};
  contents.add("a", Tensor::of({1, 2, 3}, {3}));
  contents.add("b", Tensor::of({4, 5}, {1, 2}));
  writeSafetensors(directory / "whole", contents);
  const std::string whole = readFile(directory / "whole");
  REQUIRE(whole.size() > 150);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    CHECK(problemOf(whole.substr(0, length)) != "");
  }
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (const int flip : {1, 0x20, 0x80}) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ flip);
      CAPTURE(i);
      CHECK_NOTHROW(problemOf(changed));  // FileError is caught inside; anything else is a fault
    }
}

TEST_CASE("contents that the format cannot hold are refused") {
  TemporaryDirectory directory;
  const auto problem = [&](const Safetensors& contents) {
    return thrown<InvalidArgument>([&] { writeSafetensors(directory / "x", contents); });
  };
  Safetensors twice, reserved, undefined, blocked;
  twice.add("w", Tensor::zeros({1}));
  twice.add("w", Tensor::zeros({1}));
  reserved.add("__metadata__", Tensor::zeros({1}));
  undefined.add("w", Tensor());
  blocked.add("w", Tensor::zeros({1, 2, 3, 3}, DType::Float32, Device::cpu(), Layout::ChannelsLast));
  CHECK(problem(twice) == "safetensors: there are two tensors called \"w\"");
  CHECK(problem(reserved) == "safetensors: a tensor cannot be called __metadata__");
  CHECK(problem(undefined) == "safetensors: \"w\" is an undefined tensor, which cannot be written");
  CHECK_CONTAINS(problem(blocked), "in channels-last, which cannot be written");
  CHECK(directory.names().empty());
}

}  // namespace muster
