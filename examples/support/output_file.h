#pragma once

#include <filesystem>

namespace example {

/// Finds out before the training, rather than after it, that a file cannot be written. An empty path is none.
/// @throws muster::FileError naming the path and the cause.
void checkOutputFile(const std::filesystem::path& file);

}  // namespace example
