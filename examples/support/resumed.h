#pragma once

#include <filesystem>
#include <functional>

namespace example {

/// Calls `fit`, which continues a checkpoint. @param file  the checkpoint; empty: there is none.
/// @throws muster::FileError that names the file, if its training state holds impossible numbers; else what
///         `fit` throws.
void fitFrom(const std::filesystem::path& file, const std::function<void()>& fit);

}  // namespace example
