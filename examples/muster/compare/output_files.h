#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "muster/parallel/run/run_file.h"

namespace comparing {

inline constexpr std::string_view kResultsName = "results.jsonl";

/// Checks that a comparison's files can be written into `directory`, and replace none that is not a
/// comparison's: the directory is missing, empty, or has results.jsonl.
/// @param file  the run file, which may not be among them, nor the data of the run.
/// @throws muster::FileError; InvalidArgument as program::Paths::check.
void checkOutput(const std::filesystem::path& directory, const std::string& file, const muster::RunFile& run);

/// Where the curves of an arm with a seed are, for `muster page`; "" if this program was built without the
/// page.
std::filesystem::path curvesFile(const std::filesystem::path& directory, const std::string& arm,
                                 std::int64_t seed);

}  // namespace comparing
