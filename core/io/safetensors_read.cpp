#include <algorithm>
#include <bit>

#include "muster/core/base/error.h"
#include "muster/core/io/detail/safetensors_header.h"
#include "muster/core/io/input_file.h"
#include "muster/core/io/safetensors.h"

namespace muster {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // the limit of the format's own library

std::string readHeader(InputFile& file) {
  if (file.size() < kLengthBytes)
    throw FileError(file.path(),
                    fmt::format("is not a safetensors file: {} bytes are too short", file.size()));
  std::uint64_t length = 0;
  file.read(&length, kLengthBytes);
  if (length > kMostHeaderBytes || length > file.size() - kLengthBytes)
    throw FileError(
        file.path(),
        fmt::format("is not a whole safetensors file: its header of {} bytes does not fit a file of {} bytes",
                    length, file.size()));
  std::string header(length, '\0');
  file.read(header.data(), length);
  return header;
}

}  // namespace

const Tensor* Safetensors::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors, name, &Entry::name);
  return found == tensors.end() ? nullptr : &found->values;
}

Safetensors readSafetensors(const std::filesystem::path& path) {
  InputFile file(path);
  const std::string text = readHeader(file);
  auto header = detail::parseSafetensorsHeader(text, file.size() - kLengthBytes - text.size(), path);
  Safetensors contents;
  contents.metadata = std::move(header.metadata);
  for (auto& entry : header.tensors) {
    Tensor tensor = Tensor::empty(entry.shape, entry.dtype);
    file.read(tensor.raw(), entry.end - entry.begin);
    contents.add(std::move(entry.name), std::move(tensor));
  }
  return contents;
}

}  // namespace muster
