#include "muster/core/listeners/detail/stopping_record.h"

#include <cmath>

namespace muster::detail {
namespace {

enum Number { BestEpoch, BestValue, BestScore, ImprovedEpoch, ImprovedValue, Seconds, kNumbers };

constexpr double kMostSeconds = 1e9;

}  // namespace

Tensor StoppingRecord::emptyNumbers() {
  return Tensor::zeros({kNumbers}, DType::Float64);
}

void StoppingRecord::write(Tensor& numbers) const {
  const auto to = numbers.span<double>();
  to[BestEpoch] = static_cast<double>(bestEpoch);
  to[BestValue] = bestValue;
  to[BestScore] = bestScore;
  to[ImprovedEpoch] = static_cast<double>(improvedEpoch);
  to[ImprovedValue] = improvedValue;
}

void StoppingRecord::writeSeconds(double seconds, Tensor& numbers) {
  numbers.span<double>()[Seconds] = seconds;
}

StoppingRecord StoppingRecord::read(const Tensor& numbers, std::string_view field, std::int64_t epochs) {
  requireSaved(numbers.dtype() == DType::Float64 && numbers.shape() == Shape{kNumbers},
               "{} is {}, which is impossible", field, numbers.toString());
  const Tensor here = numbers.device().isCpu() ? numbers : copyTo(numbers, Device::cpu());
  const auto from = here.span<double>();
  const auto requirePossible = [&](bool possible, std::string_view what, Number number) {
    requireSaved(possible, "{} has {} {}, which is impossible", field, what, from[number]);  // also NaN
  };
  const auto isEpoch = [&](Number number) {
    return from[number] >= 0 && from[number] <= static_cast<double>(epochs);
  };
  requirePossible(isEpoch(BestEpoch), "the best epoch", BestEpoch);
  requirePossible(isEpoch(ImprovedEpoch) && (from[BestEpoch] < 1) == (from[ImprovedEpoch] < 1),
                  "the last improvement in epoch", ImprovedEpoch);
  requirePossible(std::isfinite(from[BestValue]), "the best value", BestValue);
  requirePossible(std::isfinite(from[BestScore]), "the best score", BestScore);
  requirePossible(std::isfinite(from[ImprovedValue]), "the last improvement to", ImprovedValue);
  requirePossible(from[Seconds] >= 0 && from[Seconds] <= kMostSeconds, "seconds", Seconds);
  return {.bestEpoch = static_cast<std::int64_t>(from[BestEpoch]),
          .bestValue = from[BestValue],
          .bestScore = from[BestScore],
          .improvedEpoch = static_cast<std::int64_t>(from[ImprovedEpoch]),
          .improvedValue = from[ImprovedValue],
          .seconds = from[Seconds]};
}

}  // namespace muster::detail
