#include "muster/core/ops/dense.h"

#include <algorithm>
#include <optional>

#include "muster/core/backend/cpu/bfloat16_dense.h"
#include "muster/core/backend/cpu/column_sums.h"
#include "muster/core/backend/cpu/gemm.h"
#include "muster/core/backend/cpu/onednn.h"
#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/backend/cpu/small_product.h"
#include "muster/core/backend/cpu/state.h"
#include "muster/core/backend/cpu/weight_gradient.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cpu {
namespace {

/// Whether our own product is faster; examples/docs/measurements.md has the times.
bool isSmall(const DenseShape& s) {
  constexpr std::int64_t kMost = 1 << 19;  // products
  return instructionSet() == InstructionSet::Avx512 && s.batch >= 8 && s.outFeatures >= 8 &&
         s.batch <= kMost && s.inFeatures <= kMost && s.outFeatures <= kMost &&
         s.batch * s.inFeatures * s.outFeatures <= kMost;
}

/// oneDNN's matrix product on the canonical layouts, except for the forward pass of small layers. The README
/// has the alternatives.
class GemmDense final : public DensePlan {
 public:
  GemmDense(const DenseShape& shape, Context& context)
      : batch_(shape.batch),
        in_(shape.inFeatures),
        out_(shape.outFeatures),
        small_(isSmall(shape)),
        context_(context),
        gradWeight_(context.mathMode() == MathMode::BFloat16 ? 0 : batch_, out_, out_, in_, context) {
    if (context.mathMode() == MathMode::BFloat16) rounded_.emplace(shape, context);
    if (small_) stateOf(context).workspace.reserve(smallProductScratch(in_));
  }

  void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) override {
    expect("x", x, {batch_, in_});
    expect("weight", weight, {out_, in_});
    expect("y", y, {batch_, out_});
    if (bias.defined()) expect("bias", bias, {out_});
    if (rounded_) return rounded_->forward(x, weight, bias, y);
#if defined(__x86_64__)
    if (small_)
      return smallProductAvx512(batch_, in_, out_, x.data<float>(), weight.data<float>(),
                                bias.defined() ? bias.data<float>() : nullptr, y.data<float>(),
                                reinterpret_cast<float*>(stateOf(context_).workspace.data()));
#endif
    if (bias.defined()) spread(bias, y);
    MUSTER_DNNL_CHECK(dnnl_sgemm('N', 'T', batch_, out_, in_, 1.0f, x.data<float>(), in_,
                                 weight.data<float>(), in_, bias.defined() ? 1.0f : 0.0f, y.data<float>(),
                                 out_));
  }

  void backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) override {
    expect("gradY", gradY, {batch_, out_});
    expect("weight", weight, {out_, in_});
    expect("gradX", gradX, {batch_, in_});
    if (rounded_) return rounded_->backwardData(gradY, weight, gradX);
    MUSTER_DNNL_CHECK(dnnl_sgemm('N', 'N', batch_, in_, out_, 1.0f, gradY.data<float>(), out_,
                                 weight.data<float>(), in_, 0.0f, gradX.data<float>(), in_));
  }

  void backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight, Tensor& gradBias) override {
    expect("x", x, {batch_, in_});
    expect("gradY", gradY, {batch_, out_});
    expect("gradWeight", gradWeight, {out_, in_});
    if (rounded_)
      rounded_->gradWeight(x, gradY, gradWeight);
    else
      gradWeight_.run(gradY.data<float>(), x.data<float>(), gradWeight.data<float>());
    if (!gradBias.defined()) return;
    expect("gradBias", gradBias, {out_});
    const float* from = gradY.data<float>();
    float* sums = gradBias.data<float>();
    parallelFor(context_, out_, 64, [=, this](std::int64_t begin, std::int64_t end) {
      dispatch<sumColumns<float>>(from, sums, batch_, out_, begin, end);
    });
  }

 private:
  static void expect(const char* name, const Tensor& tensor, const Shape& shape) {
    muster::detail::expectTensor("dense", name, tensor, {shape});
  }

  /// Copies the bias into every row of y; the product is added to it.
  void spread(const Tensor& bias, Tensor& y) const {
    const float* from = bias.data<float>();
    float* to = y.data<float>();
    parallelFor(context_, batch_, 16, [=, this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n) std::copy_n(from, out_, to + n * out_);
    });
  }

  std::int64_t batch_, in_, out_;
  const bool small_;
  std::optional<BFloat16Dense> rounded_;  // none: float32
  Context& context_;
  WeightGradient gradWeight_;
};

}  // namespace

std::unique_ptr<DensePlan> planDense(const DenseShape& shape, Context& context) {
  fillSmallChunkCache();
  return std::make_unique<GemmDense>(shape, context);
}

}  // namespace muster::cpu
