#pragma once

#include <filesystem>
#include <string>

#include "muster/parallel/run/run_session.h"

namespace muster {

/// The cost of a session's training in a line that ends with a newline; "" if nothing was trained.
std::string costLine(const RunSession& session);

/// Writes the run and its results as JSON: RunFile::read reads it as the run again.
/// @param secondsInAll  of the whole program.  @throws FileError; then the file is unchanged.
void writeResults(const std::filesystem::path& path, const RunSession& session, const RunScores& scores,
                  double secondsInAll);

}  // namespace muster
