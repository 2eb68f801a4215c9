#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "muster/core/listeners/terminal_bar.h"

namespace comparing {

/// Progress of a grid.
struct GridState {
  std::size_t run = 1;   ///< current run, from 1
  std::size_t runs = 1;  ///< of the grid
  std::string name = {};
  double share = 0;                        ///< finished part of the grid, from 0 to 1
  std::optional<double> secondsLeft = {};  ///< empty if unknown
};

/// A bar in at most `columns` columns of ASCII, as in
/// `run 5/18  26% [=====>              ] averaging every 10, 2 workers, seed 1  3:20 left`; omits parts that
/// do not fit, the name first.
std::string gridBar(const GridState& state, int columns);

struct GridProgressOptions {
  std::size_t runs = 1;      ///< of the grid
  std::size_t finished = 0;  ///< finished earlier
  std::int64_t samplesPerRun = 1;
  muster::TerminalOptions terminal = {};
};

/// Shows the grid's progress and estimates the remaining time from the rate so far: a bar if the output is a
/// terminal, and a line for each finished run. One thread at a time.
class GridProgress {
 public:
  explicit GridProgress(GridProgressOptions options);

  /// Begins a run.
  void begin(const std::string& name);
  /// Sets the run's samples so far.
  void advance(std::int64_t samples);
  /// Ends the run; prints `line` with the remaining time.
  void finish(const std::string& line);

 private:
  void draw(double share);
  /// Finished part of the grid, with `samples` of the current run.
  double share(std::int64_t samples) const;
  std::optional<double> secondsLeft(double share) const;

  GridProgressOptions options_;
  muster::TerminalBar bar_;
  const double shareAtStart_;
  const std::chrono::steady_clock::time_point begin_;
  std::string name_;
};

}  // namespace comparing
