#pragma once

#include <filesystem>

namespace muster {

/// Finds out before the training, rather than after it, that a file cannot be written: makes a temporary file
/// beside it, as AtomicFile does, writes a page, and removes it. An empty path is none.
/// @throws muster::FileError naming the path and the cause.
void checkOutputFile(const std::filesystem::path& file);

/// The same for a directory that is made later, with those above it that are missing: writes into the nearest
/// one that is there.
void checkOutputDirectory(const std::filesystem::path& directory);

/// Whether two paths lead to one file or directory, by links or by other spellings; also where it is not
/// there yet. An empty path leads nowhere.
bool isSameFile(const std::filesystem::path& one, const std::filesystem::path& other);

/// Whether `path` is `directory` or in it, at any depth, by links or by other spellings.
bool isInside(const std::filesystem::path& path, const std::filesystem::path& directory);

}  // namespace muster
