#include "muster/core/ops/attention.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <mutex>

#include "muster/core/backend/cpu/exp.h"
#include "muster/core/backend/cpu/gemm.h"
#include "muster/core/backend/cpu/lanes.h"
#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cpu {
namespace {

/// In place: the softmax of scale * row over the unmasked keys among the first `count`; zero elsewhere.
/// @param seen  null: no key is masked.
[[gnu::always_inline]] inline void softmaxRow(float* row, const float* seen, float scale, std::int64_t count,
                                              std::int64_t all) {
  constexpr float kLowest = -3.4028235e38f;
  const float top = largestOf(
      count, kLowest, [&](std::int64_t i) __attribute__((always_inline)) {
        return !seen || seen[i] != 0 ? row[i] : kLowest;
      });
  MUSTER_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = expOfNegative((row[i] - top) * scale);
    row[i] = !seen || seen[i] != 0 ? value : 0.0f;
  }
  const auto sum = sumOf<float>(
      count, [&](std::int64_t i) __attribute__((always_inline)) { return row[i]; });
  const float factor = sum == 0.0f ? 0.0f : 1.0f / sum;  // all keys are masked
  for (std::int64_t i = 0; i < count; ++i) row[i] *= factor;
  for (std::int64_t i = count; i < all; ++i) row[i] = 0.0f;
}

/// In place: turns the gradient of a row's weights into that of its products: w (grad - sum of grad w) scale.
[[gnu::always_inline]] inline void softmaxBackwardRow(float* grad, const float* weights, float scale,
                                                      std::int64_t count) {
  const auto sum = sumOf<float>(
      count, [&](std::int64_t i) __attribute__((always_inline)) { return grad[i] * weights[i]; });
  MUSTER_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < count; ++i) grad[i] = weights[i] * (grad[i] - sum) * scale;
}

/// Computes one head of a sequence at a time, so that its products stay in the cache.
class HeadwiseAttention final : public AttentionPlan {
 public:
  HeadwiseAttention(const AttentionShape& shape, bool training, Context& context)
      : shape_(shape),
        context_(context),
        width_(shape.features / shape.heads),
        weights_(Tensor::zeros({shape.batch * shape.heads, shape.steps, shape.steps})) {
    if (training) gradWeights_ = Tensor::zeros({context.threads(), shape.steps, shape.steps});
  }

  void forward(const Tensor& x, const Tensor& mask, Tensor& y) override {
    expect("x", x, shape_.input());
    expectMask(mask);
    expect("y", y, shape_.output());
    forEachHead(mask, [&](const Head& head) {
      const Part part = partOf(x, head);
      const std::int64_t steps = shape_.steps;
      float* weights = weightsOf(head);
      gemm(steps, steps, width_, part.queries(), part.keys().transpose(), 0, weights, steps);
      for (std::int64_t t = 0; t < steps; ++t) {
        if (head.mask && head.mask[t] == 0)
          std::fill_n(weights + t * steps, steps, 0.0f);
        else
          dispatch<softmaxRow>(weights + t * steps, head.mask, scale(), shape_.causal ? t + 1 : steps, steps);
      }
      gemm(steps, width_, steps, {weights, steps}, part.values(), 0, outputOf(y, head), shape_.features);
    });
  }

  void backward(const Tensor& x, const Tensor& mask, const Tensor& gradY, Tensor& gradX) override {
    require(gradWeights_.defined(), "attention: backward() of a plan that is not for training");
    expect("x", x, shape_.input());
    expectMask(mask);
    expect("gradY", gradY, shape_.output());
    expect("gradX", gradX, shape_.input());
    forEachHead(mask, [&](const Head& head) {
      const Part part = partOf(x, head);
      const Part grad = partOf(gradX, head);
      const std::int64_t steps = shape_.steps, wide = shape_.features;
      const Matrix weights{weightsOf(head), steps}, gradOutput{outputOf(gradY, head), wide};
      float* products = gradWeights_.data<float>() + omp_get_thread_num() * steps * steps;
      gemm(steps, width_, steps, weights.transpose(), gradOutput, 0, grad.at(2), 3 * wide);
      gemm(steps, steps, width_, gradOutput, part.values().transpose(), 0, products, steps);
      for (std::int64_t t = 0; t < steps; ++t)
        dispatch<softmaxBackwardRow>(products + t * steps, weights.data + t * steps, scale(), steps);
      gemm(steps, width_, steps, {products, steps}, part.keys(), 0, grad.at(0), 3 * wide);
      gemm(steps, width_, steps, Matrix{products, steps, true}, part.queries(), 0, grad.at(1), 3 * wide);
    });
  }

 private:
  struct Head {
    std::int64_t example, index;
    const float* mask;  // of the example's steps; null: no padding
  };
  /// One head's columns of queries, keys and values.
  struct Part {
    float* first;
    std::int64_t features;
    float* at(std::int64_t which) const { return first + which * features; }
    Matrix queries() const { return {at(0), 3 * features}; }
    Matrix keys() const { return {at(1), 3 * features}; }
    Matrix values() const { return {at(2), 3 * features}; }
  };

  /// Calls f(head) for each head of each example, on the context's threads; rethrows an exception of f.
  template <typename F>
  void forEachHead(const Tensor& mask, F f) {
    std::exception_ptr failure;
    std::mutex mutex;
    parallelFor(context_, shape_.batch * shape_.heads, 1, [&](std::int64_t begin, std::int64_t end) {
      try {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t n = i / shape_.heads;
          f(Head{n, i % shape_.heads, mask.defined() ? mask.data<float>() + n * shape_.steps : nullptr});
        }
      } catch (...) {
        const std::scoped_lock lock(mutex);
        failure = std::current_exception();
      }
    });
    if (failure) std::rethrow_exception(failure);
  }

  Part partOf(const Tensor& x, const Head& head) const {
    return {x.data<float>() + head.example * shape_.steps * 3 * shape_.features + head.index * width_,
            shape_.features};
  }
  float* outputOf(const Tensor& y, const Head& head) const {
    return y.data<float>() + head.example * shape_.steps * shape_.features + head.index * width_;
  }
  float* weightsOf(const Head& head) const {
    return weights_.data<float>() + (head.example * shape_.heads + head.index) * shape_.steps * shape_.steps;
  }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(width_)); }

  static void expect(const char* name, const Tensor& tensor, const Shape& shape) {
    muster::detail::expectTensor("attention", name, tensor, {shape});
  }
  void expectMask(const Tensor& mask) const {
    if (mask.defined()) expect("mask", mask, {shape_.batch, shape_.steps});
  }

  AttentionShape shape_;
  Context& context_;
  std::int64_t width_;  // of a head
  Tensor weights_;      // [N * heads, T, T]: query, key
  Tensor gradWeights_;  // [thread, T, T]; training only
};

}  // namespace

std::unique_ptr<AttentionPlan> planAttention(const AttentionShape& shape, bool training, Context& context) {
  fillSmallChunkCache();
  return std::make_unique<HeadwiseAttention>(shape, training, context);
}

}  // namespace muster::cpu
