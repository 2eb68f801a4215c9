#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace muster::detail {

/// The names of what is in a directory, in no order. @param error  none if it could be read; then all are
/// there.
///
/// In place of std::filesystem::directory_iterator: that of libstdc++ terminates the process if memory runs
/// out.
std::vector<std::string> namesIn(const std::filesystem::path& directory, std::error_code& error);

}  // namespace muster::detail
