#pragma once

#include <filesystem>
#include <string_view>

#include "muster/core/io/safetensors.h"

namespace muster::detail {

/// Whether the checksums are stored under this name of a file's metadata.
bool isOfChecksums(std::string_view metadata);

/// Adds the CRC-32 of the header (metadata, names, types and shapes) and of each tensor. Call it last.
void addChecksums(Safetensors& file);

/// Does nothing for a file without checksums: early versions wrote none.
/// @param path  for the error. @throws FileError if the header is damaged.
void requireHeaderChecksum(const Safetensors& file, const std::filesystem::path& path);

/// Does nothing for a file without checksums. @param path  for the error.
/// @throws FileError naming the first damaged tensor.
void requireTensorChecksums(const Safetensors& file, const std::filesystem::path& path);

}  // namespace muster::detail
