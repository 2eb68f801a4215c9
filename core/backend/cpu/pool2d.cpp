#include "muster/core/ops/pool2d.h"

#include <cstring>
#include <vector>

#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/pool2d_kernels.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/backend/planes.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cpu {

const pool::Kernels& pool::kernels() {
#if defined(__x86_64__)
  if (instructionSet() == InstructionSet::Avx512) return avx512Kernels();
  if (instructionSet() == InstructionSet::Avx2) return avx2Kernels();
#endif
  return baselineKernels();
}

namespace {

pool::Plane planeOf(const Pool2dShape& s, std::int64_t lanes) {
  const Shape out = s.output();
  return {.height = s.height,
          .width = s.width,
          .outHeight = out[2],
          .outWidth = out[3],
          .lanes = lanes,
          .kernel = {s.kernel[0], s.kernel[1]},
          .stride = {s.stride[0], s.stride[1]},
          .padding = {s.padding[0], s.padding[1]}};
}

const pool::MaxKernels<std::uint8_t>& maxKernels(std::uint8_t) {
  return pool::kernels().maxOfFew;
}
const pool::MaxKernels<std::int32_t>& maxKernels(std::int32_t) {
  return pool::kernels().maxOfMany;
}

class LoopPool2d : public Pool2dPlan {
 public:
  LoopPool2d(const Pool2dShape& shape, Layout layout, Context& context)
      : shape_(shape),
        layout_(layout),
        context_(context),
        planes_(planesOf(shape.input(), layout).count),
        plane_(planeOf(shape, planesOf(shape.input(), layout).lanes)) {}

  Layout layout() const final { return layout_; }

  void forward(const Tensor& x, Tensor& y) final {
    expect("x", x, shape_.input());
    expect("y", y, shape_.output());
    const float* from = x.data<float>();
    float* to = y.data<float>();
    forEachPlane([=, this](std::int64_t p) {
      forwardPlane(from + p * inputElements(), to + p * outputElements(), p);
    });
  }

  void backward(const Tensor& gradY, Tensor& gradX) final {
    expect("gradY", gradY, shape_.output());
    expect("gradX", gradX, shape_.input());
    const float* from = gradY.data<float>();
    float* to = gradX.data<float>();
    forEachPlane([=, this](std::int64_t p) {
      float* target = to + p * inputElements();
      std::memset(target, 0, static_cast<std::size_t>(inputElements()) * sizeof(float));
      backwardPlane(from + p * outputElements(), target, p);
    });
  }

 protected:
  virtual void forwardPlane(const float* x, float* y, std::int64_t plane) = 0;
  /// Adds to gradX, which must be zero initially.
  virtual void backwardPlane(const float* gradY, float* gradX, std::int64_t plane) = 0;

  const pool::Plane& plane() const { return plane_; }
  std::int64_t planes() const { return planes_; }
  std::int64_t inputElements() const { return plane_.height * plane_.width * plane_.lanes; }
  std::int64_t outputElements() const { return plane_.outHeight * plane_.outWidth * plane_.lanes; }

 private:
  template <typename F>
  void forEachPlane(F f) {
    parallelFor(context_, planes_, 1, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p) f(p);
    });
  }

  void expect(const char* name, const Tensor& tensor, const Shape& shape) const {
    muster::detail::expectTensor("pool2d", name, tensor, {shape, layout_});
  }

  Pool2dShape shape_;
  Layout layout_;
  Context& context_;
  std::int64_t planes_;
  pool::Plane plane_;
};

/// Stores for each output the kernel position of the largest pixel, as the smallest integer type that fits.
template <typename Index>
class MaxPool final : public LoopPool2d {
 public:
  MaxPool(const Pool2dShape& shape, Layout layout, Context& context)
      : LoopPool2d(shape, layout, context), winners_(static_cast<std::size_t>(planes() * outputElements())) {}

 private:
  void forwardPlane(const float* x, float* y, std::int64_t p) override {
    kernels_.forward(plane(), x, y, winnersOf(p));
  }
  void backwardPlane(const float* gradY, float* gradX, std::int64_t p) override {
    kernels_.backward(plane(), gradY, winnersOf(p), gradX);
  }
  Index* winnersOf(std::int64_t p) { return winners_.data() + p * outputElements(); }

  const pool::MaxKernels<Index>& kernels_ = maxKernels(Index{});
  std::vector<Index> winners_;  // [plane, row, column, lane]
};

class AveragePool final : public LoopPool2d {
 public:
  using LoopPool2d::LoopPool2d;

 private:
  void forwardPlane(const float* x, float* y, std::int64_t) override {
    pool::kernels().average.forward(plane(), x, y);
  }
  void backwardPlane(const float* gradY, float* gradX, std::int64_t) override {
    pool::kernels().average.backward(plane(), gradY, gradX);
  }
};

}  // namespace

std::unique_ptr<Pool2dPlan> planPool2d(const Pool2dShape& shape, Layout layout, Context& context) {
  if (shape.kind == PoolKind::Average) return std::make_unique<AveragePool>(shape, layout, context);
  if (shape.kernel[0] * shape.kernel[1] <= 256)
    return std::make_unique<MaxPool<std::uint8_t>>(shape, layout, context);
  return std::make_unique<MaxPool<std::int32_t>>(shape, layout, context);
}

}  // namespace muster::cpu
