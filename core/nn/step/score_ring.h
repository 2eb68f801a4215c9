#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>

#include "muster/core/base/error.h"
#include "muster/core/nn/step_ticket.h"

namespace muster::detail {

/// Scores of recent steps by step number, for tickets. Allocates nothing.
class ScoreRing {
 public:
  /// Number of steps kept.
  static constexpr std::size_t kSteps = 64;

  /// Numbers start at 1.
  std::uint64_t nextNumber() { return ++last_; }

  void put(std::uint64_t number, const StepScore& score) { entryOf(number) = {number, score, nullptr}; }
  /// Records a failed step; `get` then throws the failure.
  void put(std::uint64_t number, std::exception_ptr failure) {
    entryOf(number) = {number, {}, std::move(failure)};
  }
  bool has(std::uint64_t number) const { return entryOf(number).number == number; }

  /// @throws the step's exception; InvalidArgument if the step is no longer kept.
  StepScore get(std::uint64_t number) const;

 private:
  struct Entry {
    std::uint64_t number = 0;
    StepScore score;
    std::exception_ptr failure;
  };
  Entry& entryOf(std::uint64_t number) { return entries_[number % kSteps]; }
  const Entry& entryOf(std::uint64_t number) const { return entries_[number % kSteps]; }

  std::array<Entry, kSteps> entries_;
  std::uint64_t last_ = 0;
};

inline StepScore ScoreRing::get(std::uint64_t number) const {
  const Entry& entry = entryOf(number);
  require(entry.number == number, "step: {} others came since, and its score was forgotten", last_ - number);
  if (entry.failure) std::rethrow_exception(entry.failure);
  return entry.score;
}

}  // namespace muster::detail
