#pragma once

#include <filesystem>

namespace muster {

/// Finds out before the training, rather than after it, that a file cannot be written. An empty path is none.
/// @throws muster::FileError naming the path and the cause.
void checkOutputFile(const std::filesystem::path& file);

/// The same for a directory that is made later, with those above it that are missing. Makes nothing.
void checkOutputDirectory(const std::filesystem::path& directory);

}  // namespace muster
