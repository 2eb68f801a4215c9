#pragma once

#include <filesystem>

namespace muster {

/// Tests before a training whether a file can be written: creates a temporary file beside it, as AtomicFile
/// does, writes a page, and removes it. Ignores an empty path.
/// @throws muster::FileError naming the path and the cause.
void checkOutputFile(const std::filesystem::path& file);

/// As above for a directory that is created later, with missing ones above it: writes into the nearest
/// directory that exists.
void checkOutputDirectory(const std::filesystem::path& directory);

/// Whether two paths are one file or directory, through links or other spellings; it need not
/// exist. False for an empty path.
bool isSameFile(const std::filesystem::path& one, const std::filesystem::path& other);

/// Whether `path` is `directory` or in it, at any depth, by links or by other spellings.
bool isInside(const std::filesystem::path& path, const std::filesystem::path& directory);

}  // namespace muster
