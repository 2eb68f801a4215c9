#pragma once

#include <algorithm>
#include <cstdint>

#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/tensor/tensor.h"

namespace muster::cpu {

// Note [Time first]
// Inside recurrent layers all tensors are [T, N, ...]: the rows of one step are adjacent, and one product
// computes the input's part of all gates, another each weight gradient. Copying sequences into this order and
// back pays off, because the products read them many times.

/// Copies sequences [N, T, F], as users have them, to the order [T, N, F] and back. A mask is float32 [N, T],
/// where 0 is padding; undefined: all steps are real.
class TimeFirst {
 public:
  /// @param units  of a row, by which work is divided among threads.
  TimeFirst(std::int64_t batch, std::int64_t steps, std::int64_t units, Context& context)
      : context_(context), batch_(batch), steps_(steps), units_(units) {}

  /// Calls f(row of the step, whether it is real) for all examples at step t.
  template <typename F>
  void forEachRow(const Tensor& mask, std::int64_t t, F f) const {
    const float* real = mask.defined() ? mask.data<float>() + t : nullptr;
    const std::int64_t steps = steps_;
    constexpr std::int64_t kLeastUnits = 2048;  // minimum per thread
    parallelFor(context_, batch_, std::max<std::int64_t>(1, kLeastUnits / units_),
                [=](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t n = begin; n < end; ++n) f(n, !real || real[n * steps] != 0);
                });
  }

  /// to [T, N, F] = from [N, T, F], zero at padding.
  void load(const float* from, const Tensor& mask, std::int64_t features, float* to) const;
  /// to [N, T, F] = from [T, N, F], zero at padding.
  void store(const float* from, const Tensor& mask, std::int64_t features, float* to) const;
  /// As `store`, without a mask.
  void storeAll(const float* from, std::int64_t features, float* to) const;
  /// to [N, F] += step t of from [N, T, F], where it is real.
  void addStep(const float* from, const Tensor& mask, std::int64_t t, std::int64_t features, float* to) const;

 private:
  Context& context_;
  std::int64_t batch_, steps_, units_;
};

}  // namespace muster::cpu
