#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/core/listeners/performance_report.h"

namespace muster {

/// What a worker did lately.
struct WorkerRow {
  std::optional<double> score = {};  ///< mean over its examples
  double samplesPerSecond = 0;
  PerformanceReport::Shares shares = {};
};

/// A line for each worker and one that explains them, with '\n' between them:
///
///     worker 0  score 0.1320    4310 samples/s  ##########################################ddssm
///     # computing, d waiting for data, s synchronising, m merging
///
/// @param columns, rows  that it may take; of workers for which there is no room it says how many.
/// @param colour  by the codes that terminals know.
/// @return "" for less than two rows.
std::string workerRows(const std::vector<WorkerRow>& workers, int columns, int rows, bool colour);

}  // namespace muster
