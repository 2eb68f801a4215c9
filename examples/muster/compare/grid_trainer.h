#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "examples/muster/compare/grid_progress.h"
#include "examples/muster/compare/grid_session.h"

namespace comparing {

/// Trains the runs that the results lack, and updates the other files after each.
class GridTrainer {
 public:
  /// @param samplesPerRun  for the progress.
  GridTrainer(GridSession& session, muster::Comparison& comparison, std::int64_t samplesPerRun,
              std::stop_token stop);

  /// @return false if interrupted.
  bool run();

 private:
  static GridProgressOptions planOf(GridSession& session, const muster::Comparison& comparison,
                                    std::int64_t samplesPerRun);
  bool train(std::size_t arm, const std::vector<std::string>& sets, std::int64_t seed,
             const std::string& which);
  /// Trains up to the first merge and discards it, so that one-time costs of the process are not measured.
  void warmUp(Cell cell);

  GridSession& s_;
  muster::Comparison& c_;
  std::stop_token stop_;
  GridProgress progress_;
  bool warm_ = false;
};

}  // namespace comparing
