#include "muster/core/ops/dense.h"

#include "muster/core/backend/cuda/kernels/channel_sums.h"
#include "muster/core/backend/cuda/kernels/elementwise.h"
#include "muster/core/backend/cuda/matmul.h"
#include "muster/core/base/log.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cuda {
namespace {

class MatmulDense final : public DensePlan {
 public:
  MatmulDense(const DenseShape& s, MathMode mode, Context& context)
      : batch_(s.batch),
        in_(s.inFeatures),
        out_(s.outFeatures),
        context_(context),
        mode_(mode),
        x_(s.batch * s.inFeatures, stateOf(context), mode),
        weight_(s.outFeatures * s.inFeatures, stateOf(context), mode),
        gradY_(s.batch * s.outFeatures, stateOf(context), mode),
        plain_(stateOf(context), mode, forwardShape(), Epilogue::None),
        withBias_(stateOf(context), mode, forwardShape(), Epilogue::Bias),
        data_(stateOf(context), mode, {.rows = batch_, .columns = in_, .inner = out_}, Epilogue::None),
        weights_(stateOf(context), mode, {.rows = out_, .columns = in_, .inner = batch_, .transposeA = true},
                 Epilogue::None) {}

  /// A description for reports.
  std::string describe() const {
    return fmt::format("cuBLASLt {}, bias {} the product", nameOf(mode_),
                       withBias_.supported() ? "in" : "added after");
  }

  bool gradientsApart() const override { return !gradY_.rounds(); }

  void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) override {
    expect("x", x, {batch_, in_});
    expect("weight", weight, {out_, in_});
    expect("y", y, {batch_, out_});
    if (bias.defined()) expect("bias", bias, {out_});
    const cudaStream_t stream = stateOf(context_).stream();
    const void* const a = x_.of(x, stream);
    const void* const b = weight_.of(weight, stream);
    if (bias.defined() && withBias_.supported())
      return withBias_.run(a, b, bias.data<float>(), y.data<float>());
    plain_.run(a, b, nullptr, y.data<float>());
    if (bias.defined())
      MUSTER_CUDA_CHECK(
          launchAddBias(bias.data<float>(), y.data<float>(), {batch_, out_, 1}, /*relu=*/false, stream));
  }

  void backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) override {
    expect("gradY", gradY, {batch_, out_});
    expect("weight", weight, {out_, in_});
    expect("gradX", gradX, {batch_, in_});
    const cudaStream_t stream = stateOf(context_).stream();
    data_.run(gradY_.of(gradY, stream), weight_.of(weight, stream), nullptr, gradX.data<float>());
  }

  void backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight, Tensor& gradBias) override {
    expect("x", x, {batch_, in_});
    expect("gradY", gradY, {batch_, out_});
    expect("gradWeight", gradWeight, {out_, in_});
    const cudaStream_t stream = stateOf(context_).stream();
    weights_.run(gradY_.of(gradY, stream), x_.of(x, stream), nullptr, gradWeight.data<float>());
    if (!gradBias.defined()) return;
    expect("gradBias", gradBias, {out_});
    MUSTER_CUDA_CHECK(launchChannelSums({batch_, out_, 1}, gradY.data<float>(), gradBias.data<float>(),
                                        stateOf(context_).partialSums(), stream));
  }

 private:
  MatmulShape forwardShape() const {
    return {.rows = batch_, .columns = out_, .inner = in_, .transposeB = true};
  }
  void expect(const char* name, const Tensor& tensor, const Shape& shape) const {
    muster::detail::expectTensor("dense", name, tensor,
                                 {shape, Layout::RowMajor, DType::Float32, context_.device()});
  }

  std::int64_t batch_, in_, out_;
  Context& context_;
  MathMode mode_;
  Factor x_, weight_, gradY_;
  Matmul plain_, withBias_, data_, weights_;
};

}  // namespace

std::unique_ptr<DensePlan> planDense(const DenseShape& shape, Context& context) {
  auto plan = planProducts(
      stateOf(context), [&](MathMode mode) { return std::make_unique<MatmulDense>(shape, mode, context); });
  log(LogLevel::Debug, "planned: " + plan->describe());
  return plan;
}

}  // namespace muster::cuda
