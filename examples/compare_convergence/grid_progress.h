#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "muster/core/base/log.h"

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
  /// Whatever is empty is that of standard error.
  std::optional<bool> terminal = {};
  std::function<void(std::string_view)> write = {};
  std::function<int()> columns = {};
  std::function<std::chrono::steady_clock::time_point()> now = {};
};

/// Shows how far the grid has come, and how long the rest will take at the rate so far: on a terminal a bar,
/// redrawn at most ten times a second, and a line for each finished run; elsewhere the lines only. While it
/// lives, log lines take the bar's place until it is drawn again. One thread at a time.
class GridProgress {
 public:
  explicit GridProgress(GridProgressOptions options);
  ~GridProgress();
  GridProgress(const GridProgress&) = delete;
  GridProgress& operator=(const GridProgress&) = delete;

  /// A run begins.
  void begin(const std::string& name);
  /// Its samples so far.
  void advance(std::int64_t samples);
  /// It has ended; `line` stays, with what is left behind it.
  void finish(const std::string& line);
  /// Takes the bar away.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  std::optional<double> secondsLeft(double share) const;
  double share(std::int64_t samples) const;

  GridProgressOptions options_;
  const double shareAtStart_;
  const Clock::time_point begin_;
  Clock::time_point lastDrawn_;
  std::string name_;
  bool drawn_ = false;
  muster::LogSink logBefore_;  // while there is a terminal
};

}  // namespace convergence
