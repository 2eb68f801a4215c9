#pragma once

#include <cstdint>

namespace muster {

/// Tells when a count that may jump has passed another multiple of `n`.
class Every {
 public:
  /// @param n  0: never.
  explicit Every(std::int64_t n) : n_(n) {}

  /// Counting goes on from here.
  void start(std::int64_t count) { last_ = count; }
  /// True where a multiple of n lies in (the last count, `count`].
  bool passed(std::int64_t count) {
    const bool any = n_ > 0 && count / n_ > last_ / n_;
    last_ = count;
    return any;
  }

 private:
  std::int64_t n_;
  std::int64_t last_ = 0;
};

}  // namespace muster
