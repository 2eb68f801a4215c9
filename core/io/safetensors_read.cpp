#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/io/detail/file_shortage.h"
#include "muster/core/io/detail/safetensors_dtype.h"
#include "muster/core/io/detail/safetensors_header.h"
#include "muster/core/io/input_file.h"
#include "muster/core/io/safetensors.h"

namespace muster {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // the limit of the `safetensors` library

/// For example ", but a zip archive, as torch.save writes one"; "" for unknown first bytes.
std::string looksLike(std::span<const unsigned char> bytes) {
  const auto begins = [&](std::string_view with) {
    return bytes.size() >= with.size() &&
           std::ranges::equal(bytes.first(with.size()), with, {}, {},
                              [](char c) { return static_cast<unsigned char>(c); });
  };
  const auto isText = [](unsigned char c) { return (c >= 0x20 && c < 0x7f) || (c >= '\t' && c <= '\r'); };
  if (bytes.empty()) return "";
  if (begins("PK\x03\x04")) return ", but a zip archive, as torch.save writes one";
  if (begins("\x80\x02")) return ", but a pickle, as older versions of torch.save write one";
  if (begins("\x89HDF")) return ", but HDF5, as Keras writes it";
  if (begins("\x1f\x8b")) return ", but packed by gzip";
  if (begins("\x08") && bytes.size() > 2 && bytes[2] == 0x12) return ", but probably an ONNX model";
  if (!std::ranges::all_of(bytes, isText)) return "";
  return bytes[0] == '{' || bytes[0] == '[' ? ", but JSON" : ", but text";
}

std::string readHeader(InputFile& file) {
  if (file.size() < kLengthBytes)
    throw FileError(file.path(), fmt::format("is not a safetensors file: {} {} too short",
                                             plural(file.size(), "byte"), file.size() == 1 ? "is" : "are"));
  std::uint64_t length = 0;
  file.read(&length, kLengthBytes);
  if (length > kMostHeaderBytes || length > file.size() - kLengthBytes) {
    // Header lengths are multiples of 8, so with such a length the file was probably truncated.
    const bool header = length <= kMostHeaderBytes && length % kLengthBytes == 0;
    const auto other =
        header ? "" : looksLike({reinterpret_cast<const unsigned char*>(&length), kLengthBytes});
    throw FileError(
        file.path(),
        !other.empty()
            ? fmt::format("is not a safetensors file{}", other)
            : fmt::format(
                  "is not a whole safetensors file: its header of {} bytes does not fit a file of {} bytes",
                  length, file.size()));
  }
  std::string header(length, '\0');
  file.read(header.data(), length);
  return header;
}

/// @param bits  IEEE 754 half precision.
float fromFloat16(std::uint16_t bits) {
  const float sign = bits & 0x8000 ? -1.0f : 1.0f;
  const int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  if (exponent == 0x1f)
    return fraction != 0 ? std::numeric_limits<float>::quiet_NaN()
                         : sign * std::numeric_limits<float>::infinity();
  const int whole = exponent == 0 ? fraction : fraction + 0x400;  // times the last place's power of two
  return sign * std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - 25);
}

/// @param bits  the upper half of a float32.
float fromBfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

Tensor readTensor(InputFile& file, const detail::SafetensorsHeader::Entry& entry) {
  Tensor tensor = Tensor::empty(entry.shape, entry.dtype);
  const std::uint64_t bytes = entry.end - entry.begin;
  if (entry.type != detail::kFloat16 && entry.type != detail::kBfloat16) {
    file.read(tensor.raw(), bytes);
    return tensor;
  }
  std::vector<std::uint16_t> halves(bytes / 2);
  file.read(halves.data(), bytes);
  std::ranges::transform(halves, tensor.data<float>(),
                         entry.type == detail::kFloat16 ? fromFloat16 : fromBfloat16);
  return tensor;
}

/// Reads past a tensor.
void skip(InputFile& file, std::uint64_t bytes) {
  std::vector<char> unused(1 << 16);
  for (; bytes > 0; bytes -= std::min<std::uint64_t>(bytes, unused.size()))
    file.read(unused.data(), std::min<std::uint64_t>(bytes, unused.size()));
}

}  // namespace

const Tensor* Safetensors::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors, name, &Entry::name);
  return found == tensors.end() ? nullptr : &found->values;
}

std::map<std::string_view, const Tensor*> Safetensors::byName() const {
  std::map<std::string_view, const Tensor*> all;
  for (const auto& [name, values] : tensors) all.emplace(name, &values);
  return all;
}

Safetensors readSafetensors(const std::filesystem::path& path, OtherTypes others) {
  return detail::onFile("readSafetensors", path, [&] {
    InputFile file(path);
    const std::string text = readHeader(file);
    auto header =
        detail::parseSafetensorsHeader(text, file.size() - kLengthBytes - text.size(), path, others);
    Safetensors contents;
    contents.metadata = std::move(header.metadata);
    for (auto& entry : header.tensors) {
      if (detail::safetensorsDType(entry.type)) {
        Tensor tensor = readTensor(file, entry);
        contents.add(std::move(entry.name), std::move(tensor));
        continue;
      }
      skip(file, entry.end - entry.begin);
      contents.others.emplace(std::move(entry.name), std::move(entry.type));
    }
    return contents;
  });
}

}  // namespace muster
