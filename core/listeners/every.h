#pragma once

#include <cstdint>

namespace muster {

/// Reports when a count that may jump has passed a multiple of `n`.
class Every {
 public:
  /// @param n  0: never.
  explicit Every(std::int64_t n) : n_(n) {}

  /// Restarts counting from `count`.
  void start(std::int64_t count) { last_ = count; }
  /// True if (the last count, `count`] contains a multiple of n.
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
