#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace muster::detail {

/// The names of a directory's entries, unordered. @param error  cleared if all names could be read.
///
/// Replaces std::filesystem::directory_iterator, which ends the process in libstdc++ if memory runs out.
std::vector<std::string> namesIn(const std::filesystem::path& directory, std::error_code& error);

}  // namespace muster::detail
