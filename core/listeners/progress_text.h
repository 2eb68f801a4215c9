#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace muster {

/// The progress of an epoch.
struct Progress {
  std::int64_t epoch = 1;   ///< from 1
  std::int64_t epochs = 1;  ///< the number of the last epoch
  std::int64_t batches = 0;
  std::optional<std::int64_t> batchesPerEpoch = {};
  std::int64_t examples = 0;
  std::chrono::duration<double> elapsed{0};  ///< since the epoch began
  std::optional<double> score = {};          ///< mean over the epoch so far
};

/// A bar of `width` columns for what is done, from 0 to 1: `[=========>          ]`.
std::string meter(double share, int width);

/// A score with four decimals, `0.1235`; from 100,000 on, as where a training diverges, `1.235e+35`.
std::string scoreDigits(double score);

/// For example `0:07`, `12:34` or `1:02:03`, rounded up.
std::string durationText(double seconds);

/// A progress bar in at most `columns` columns of ASCII, as `epoch 1/3  45% [=========>          ] 211/469
/// 8612 samples/s  score 0.1234  0:04 left`; parts that do not fit are left out, the least important first.
std::string progressBar(const Progress& progress, int columns);

/// For a log file: `epoch 1/3: 45 % (211 of 469 batches), 8612 samples/s, score 0.1234, 0:04 left`.
std::string progressLine(const Progress& progress);

/// A finished epoch: `epoch 1/3: score 0.1234, 60000 examples in 7.0 s, 8612 samples/s`.
std::string epochLine(const Progress& progress);

}  // namespace muster
