#pragma once

#include <cstdint>
#include <string_view>

#include "muster/core/nn/training_state.h"

namespace muster::detail {

/// What EarlyStopping counts over a training, as checkpoints keep it: six float64 numbers.
struct StoppingRecord {
  /// The best epoch and its value, 0 before the first evaluation, and the model's score then.
  std::int64_t bestEpoch = 0;
  double bestValue = 0, bestScore = 0;
  /// The last epoch that was better by more than `minImprovement`.
  std::int64_t improvedEpoch = 0;
  double improvedValue = 0;
  double seconds = 0;  ///< of training

  /// Zeros, float64 on the CPU, for `write` and `writeSeconds`.
  static Tensor emptyNumbers();
  void write(Tensor& numbers) const;  ///< all but the seconds
  static void writeSeconds(double seconds, Tensor& numbers);
  /// @param numbers  on any device. @param field  names them in errors.
  /// @param epochs  that the model has finished: the most that the record can name.
  /// @throws SavedStateError for another type or shape, or for numbers that are impossible.
  static StoppingRecord read(const Tensor& numbers, std::string_view field, std::int64_t epochs);
};

}  // namespace muster::detail
