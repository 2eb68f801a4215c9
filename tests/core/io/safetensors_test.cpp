#include "muster/core/io/safetensors.h"

#include <fmt/format.h>

#include <numeric>

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
  CHECK(read.tensors[0].name + " " + read.tensors[0].values.toString() == "w float32 [2] on cpu");
  CHECK(std::ranges::equal(read.tensors[0].values.span<float>(), std::array{1, -2}));
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

TEST_CASE("all element types, scalars and empty tensors are read back, and larger elements come first") {
  TemporaryDirectory directory;
  Safetensors contents;
  Tensor bytes = Tensor::zeros({3}, DType::UInt8), doubles = Tensor::zeros({2, 2}, DType::Float64),
         scalar = Tensor::zeros({}, DType::Int64), nothing = Tensor::zeros({0, 4});
  std::iota(bytes.data<std::uint8_t>(), bytes.data<std::uint8_t>() + 3, 250);
  std::iota(doubles.data<double>(), doubles.data<double>() + 4, 0.1);
  scalar.data<std::int64_t>()[0] = -5;
  const Tensor odd = Tensor::of({1, 2, 3}, {3, 1});
  for (const auto& [name, values] : {std::pair("bytes", bytes),
                                     {"nothing", nothing},
                                     {"odd", odd},
                                     {"doubles", doubles},
                                     {"scalar", scalar}})
    contents.add(name, values);
  contents.metadata = {{"format", "pt"}, {"text", "\"quoted\"\n"}};
  writeSafetensors(directory / "a", contents);
  const Safetensors read = readSafetensors(directory / "a");
  CHECK(read.metadata == contents.metadata);
  std::vector<std::string> order;
  for (const auto& [name, values] : read.tensors) {
    order.push_back(name);
    const Tensor* before = contents.find(name);
    REQUIRE(before != nullptr);
    REQUIRE(values.toString() == before->toString());
    CHECK(std::memcmp(values.raw(), before->raw(), values.bytes()) == 0);
  }
  CHECK(order == std::vector<std::string>{"doubles", "scalar", "nothing", "odd", "bytes"});
  CHECK(read.find("absent") == nullptr);
}

TEST_CASE("files of other programs are refused, and the error says what they are") {
  const auto problem = [](const std::string& bytes) {
    const auto text = problemOf(bytes);
    const std::string prefix = "is not a safetensors file";
    return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
  };
  CHECK(problem("") == ": 0 bytes are too short");
  CHECK(problem("1234567") == ": 7 bytes are too short");
  CHECK(problem("{\"format\": 1}") == ", but JSON");
  CHECK(problem("label,x\n1,2\n") == ", but text");
  CHECK(problem("PK\x03\x04 and the rest") == ", but a zip archive, as torch.save writes one");
  CHECK(problem(std::string("\x80\x02\x8a\x0al\xfc\x9c\x46", 8)) ==
        ", but a pickle, as older versions of torch.save write one");
  CHECK(problem("\x89HDF\r\n\x1a\n") == ", but HDF5, as Keras writes it");
  CHECK(problem("\x1f\x8b\x08 and the rest") == ", but packed by gzip");
  CHECK(problem("\x08\x07\x12\x04muster") == ", but probably an ONNX model");
  for (const auto& [first, length] :
       {std::pair('\x09', 9), {'\x80', 640}})  // the second begins like a pickle
    CHECK(
        problem(std::string{first, length == 640 ? '\2' : '\0', 0, 0, 0, 0, 0, 0, '{', '}'}) ==
        fmt::format("is not a whole safetensors file: its header of {} bytes does not fit a file of 10 bytes",
                    length));
  CHECK_CONTAINS(problem(std::string(16, '\xFF')), "its header of 18446744073709551615 bytes");
}

// All that may be wrong in a header is tested in safetensors_header_test.
TEST_CASE("a header is compared with the data after it") {
  const std::string one = tensor("w", R"("dtype":"F32","shape":[1],"data_offsets":[0,4])");
  CHECK(problemOf(fileOf("{}", "")) == "");
  CHECK(problemOf(fileOf(R"({"__metadata__":{"a":"b"}}   )", "")) == "");
  CHECK(problemOf(fileOf(one, "1234")) == "");
  CHECK(problemOf(fileOf(one, "12345678")) == "it has 4 bytes after the last tensor");
}

// Changed bytes are the fuzzers' subject: tests/fuzz/safetensors_fuzz.cpp.
TEST_CASE("every truncation is an error") {
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
}

TEST_CASE("contents that the format cannot hold are refused") {
  TemporaryDirectory directory;
  const auto problem = [&](const Safetensors& contents) {
    return thrown<InvalidArgument>([&] { writeSafetensors(directory / "x", contents); });
  };
  const Tensor one = Tensor::zeros({1});
  CHECK(problem({.tensors = {{"w", one}, {"w", one}}}) == "safetensors: there are two tensors called \"w\"");
  CHECK(problem({.tensors = {{"__metadata__", one}}}) ==
        "safetensors: a tensor cannot be called __metadata__");
  CHECK(problem({.tensors = {{"w", Tensor()}}}) ==
        "safetensors: \"w\" is an undefined tensor, which cannot be written");
  const Tensor blocked = Tensor::zeros({1, 2, 3, 3}, DType::Float32, Device::cpu(), Layout::ChannelsLast);
  CHECK_CONTAINS(problem({.tensors = {{"w", blocked}}}), "in channels-last, which cannot be written");
  CHECK(directory.names().empty());
}

}  // namespace muster
