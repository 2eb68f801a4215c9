#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "muster/core/listeners/terminal_bar.h"

namespace convergence {

/// How far a grid has come.
struct GridState {
  std::size_t run = 1;   ///< the one under way, from 1
  std::size_t runs = 1;  ///< of the grid
  std::string name = {};
  double share = 0;                        ///< of the grid that is done, from 0 to 1
  std::optional<double> secondsLeft = {};  ///< where something is known of it
};

/// A bar in at most `columns` columns of ASCII, as in
/// `run 5/18  26% [=====>              ] averaging every 10, 2 workers, seed 1  3:20 left`; what does not fit
/// is left out, the name first.
std::string gridBar(const GridState& state, int columns);

struct GridProgressOptions {
  std::size_t runs = 1;      ///< of the grid
  std::size_t finished = 0;  ///< of them, before
  std::int64_t samplesPerRun = 1;
  muster::TerminalOptions terminal = {};
};

/// Shows how far the grid has come, and how long the rest will take at the rate so far: on a terminal a bar,
/// and a line for each finished run; elsewhere the lines only. One thread at a time.
class GridProgress {
 public:
  explicit GridProgress(GridProgressOptions options);

  /// A run begins.
  void begin(const std::string& name);
  /// Its samples so far.
  void advance(std::int64_t samples);
  /// It has ended; `line` stays, with what is left after it.
  void finish(const std::string& line);

 private:
  void draw(double share);
  /// Of the grid.
  double share(std::int64_t samples) const;
  std::optional<double> secondsLeft(double share) const;

  GridProgressOptions options_;
  muster::TerminalBar bar_;
  const double shareAtStart_;
  const std::chrono::steady_clock::time_point begin_;
  std::string name_;
};

}  // namespace convergence
