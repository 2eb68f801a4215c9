#include "muster/core/io/detail/model_checksums.h"

#include <fmt/format.h>
#include <zlib.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <optional>
#include <string>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/io/json_value.h"

namespace muster::detail {
namespace {

constexpr const char* kChecksums = "muster.crc32";
/// In `kChecksums`: the header's checksum. No tensor can have this name.
constexpr const char* kHeader = "__metadata__";
/// Says that the header has a checksum: without it a damaged name of `kChecksums` would turn checks off.
constexpr const char* kChecked = "muster.checked";

std::string checksumOf(const Tensor& values) {
  return fmt::format("{:08x}", ::crc32_z(0, static_cast<const Bytef*>(values.raw()), values.bytes()));
}

/// CRC-32 of the metadata without the checksums, and of each tensor's name, type and shape.
std::string headerChecksum(const Safetensors& file) {
  uLong checksum = 0;
  const auto add = [&](std::string_view text) {
    const auto length = static_cast<std::uint64_t>(text.size());
    checksum = ::crc32_z(checksum, reinterpret_cast<const Bytef*>(&length), sizeof length);
    if (!text.empty())
      checksum = ::crc32_z(checksum, reinterpret_cast<const Bytef*>(text.data()), text.size());
  };
  for (const auto& [key, text] : file.metadata)
    if (key != kChecksums)
      for (const auto& part : {key, text}) add(part);
  for (const auto& [name, values] : file.byName()) {
    add(name);
    add(toString(values->dtype()));
    add(values->shape().toString());
  }
  return fmt::format("{:08x}", checksum);
}

/// The CRC-32 of the header and of each tensor, as JSON, by name.
std::string checksumsOf(const Safetensors& file) {
  boost::json::object all;
  all[kHeader] = headerChecksum(file);
  for (const auto& [name, values] : file.byName()) all[name] = checksumOf(*values);
  return boost::json::serialize(all);
}

/// The checksums in a file; nothing if it has none: earlier versions wrote none.
std::optional<boost::json::object> checksumsIn(const Safetensors& file, const std::filesystem::path& path) {
  const auto found = file.metadata.find(kChecksums);
  if (found == file.metadata.end()) return {};
  try {
    auto parsed = parseJson(found->second);
    if (auto* const all = parsed.if_object()) return std::move(*all);
    throw FileError(path, fmt::format("its checksums are {}", describeJson(parsed)));
  } catch (const InvalidArgument& error) {
    throw FileError(path, fmt::format("its checksums are {}", error.what()));
  }
}

bool matches(const boost::json::value* expected, std::string_view checksum) {
  return expected != nullptr && expected->is_string() && expected->get_string() == checksum;
}

}  // namespace

bool isOfChecksums(std::string_view metadata) {
  return metadata == kChecksums || metadata == kChecked;
}

void addChecksums(Safetensors& file) {
  file.metadata[kChecked] = "header, tensors";
  file.metadata[kChecksums] = checksumsOf(file);
}

void requireHeaderChecksum(const Safetensors& file, const std::filesystem::path& path) {
  const auto all = checksumsIn(file, path);
  const auto* const expected = all ? all->if_contains(kHeader) : nullptr;
  // Earlier versions wrote checksums of tensors alone.
  if ((expected != nullptr || file.metadata.contains(kChecked)) && !matches(expected, headerChecksum(file)))
    throw FileError(
        path, "its header (configuration, notes, names of tensors) is damaged: the checksum does not match");
}

void requireTensorChecksums(const Safetensors& file, const std::filesystem::path& path) {
  const auto all = checksumsIn(file, path);
  if (!all) return;
  for (const auto& [name, values] : file.tensors)
    if (!matches(all->if_contains(name), checksumOf(values)))
      throw FileError(path, fmt::format("tensor \"{}\" is damaged: its checksum does not match", name));
}

}  // namespace muster::detail
