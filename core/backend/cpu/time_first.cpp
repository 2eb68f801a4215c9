#include "muster/core/backend/cpu/time_first.h"

namespace muster::cpu {

void TimeFirst::load(const float* from, const Tensor& mask, std::int64_t features, float* to) const {
  const std::int64_t batch = batch_, steps = steps_;
  for (std::int64_t t = 0; t < steps_; ++t)
    forEachRow(mask, t, [=](std::int64_t n, bool real) {
      float* row = to + (t * batch + n) * features;
      if (real)
        std::copy_n(from + (n * steps + t) * features, features, row);
      else
        std::fill_n(row, features, 0.0f);
    });
}

void TimeFirst::store(const float* from, const Tensor& mask, std::int64_t features, float* to) const {
  const std::int64_t batch = batch_, steps = steps_;
  for (std::int64_t t = 0; t < steps_; ++t)
    forEachRow(mask, t, [=](std::int64_t n, bool real) {
      float* row = to + (n * steps + t) * features;
      if (real)
        std::copy_n(from + (t * batch + n) * features, features, row);
      else
        std::fill_n(row, features, 0.0f);
    });
}

void TimeFirst::storeAll(const float* from, std::int64_t features, float* to) const {
  const std::int64_t batch = batch_, steps = steps_;
  parallelFor(context_, batch_, 1, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n)
      for (std::int64_t t = 0; t < steps; ++t)
        std::copy_n(from + (t * batch + n) * features, features, to + (n * steps + t) * features);
  });
}

void TimeFirst::addStep(const float* from, const Tensor& mask, std::int64_t t, std::int64_t features,
                        float* to) const {
  const std::int64_t steps = steps_;
  forEachRow(mask, t, [=](std::int64_t n, bool real) {
    if (!real) return;
    const float* add = from + (n * steps + t) * features;
    for (std::int64_t f = 0; f < features; ++f) to[n * features + f] += add[f];
  });
}

}  // namespace muster::cpu
