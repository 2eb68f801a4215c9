#pragma once

#include <string>

#include "muster/parallel/run/run_session.h"

namespace muster {

/// The cost of a session's training in a line that ends with a newline; "" if nothing was trained.
std::string costLine(const RunSession& session);

/// The run and its results as JSON, which RunFile::parse reads as the run again.
/// @param secondsInAll  of the whole program.
std::string resultsText(const RunSession& session, const RunScores& scores, double secondsInAll);

}  // namespace muster
