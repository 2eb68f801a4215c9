#include "muster/core/ops/layer_norm.h"

#include "muster/core/backend/cuda/kernels/norm.h"
#include "muster/core/backend/cuda/state.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cuda {
namespace {

class KernelLayerNorm final : public LayerNormPlan {
 public:
  KernelLayerNorm(const LayerNormShape& shape, Context& context)
      : shape_(shape),
        context_(context),
        moments_(static_cast<std::size_t>(shape.rows) * sizeof(RowMoments), context.device()) {}

  void forward(const Tensor& x, const Tensor& gamma, const Tensor& beta, Tensor& y) override {
    expect("x", x, shape_.input());
    expect("y", y, shape_.input());
    MUSTER_CUDA_CHECK(launchLayerNorm(call(), x.data<float>(), parameter("gamma", gamma),
                                      parameter("beta", beta), y.data<float>(), stream()));
  }

  void backward(const Tensor& x, const Tensor& gamma, const Tensor& gradY, Tensor& gradX, Tensor& gradGamma,
                Tensor& gradBeta) override {
    expect("x", x, shape_.input());
    expect("gradY", gradY, shape_.input());
    if (gradX.defined()) {
      expect("gradX", gradX, shape_.input());
      MUSTER_CUDA_CHECK(launchLayerNormGradient(call(), x.data<float>(), parameter("gamma", gamma),
                                                gradY.data<float>(), gradX.data<float>(), stream()));
    }
    if (!gradGamma.defined()) return;
    expect("gradGamma", gradGamma, {shape_.features});
    expect("gradBeta", gradBeta, {shape_.features});
    MUSTER_CUDA_CHECK(launchLayerNormParameters(call(), x.data<float>(), gradY.data<float>(),
                                                gradGamma.data<float>(), gradBeta.data<float>(),
                                                stateOf(context_).partialSums(), stream()));
  }

 private:
  cudaStream_t stream() const { return stateOf(context_).stream(); }
  LayerNormCall call() const {
    return {shape_.rows, shape_.features, shape_.epsilon, reinterpret_cast<RowMoments*>(moments_.data())};
  }
  /// Null for an undefined tensor.
  const float* parameter(const char* name, const Tensor& tensor) const {
    if (!tensor.defined()) return nullptr;
    expect(name, tensor, {shape_.features});
    return tensor.data<float>();
  }
  void expect(const char* name, const Tensor& tensor, const Shape& shape) const {
    muster::detail::expectTensor("layer_norm", name, tensor,
                                 {shape, Layout::RowMajor, DType::Float32, context_.device()});
  }

  LayerNormShape shape_;
  Context& context_;
  Buffer moments_;  // [rows] RowMoments
};

}  // namespace

std::unique_ptr<LayerNormPlan> planLayerNorm(const LayerNormShape& shape, Context& context) {
  return std::make_unique<KernelLayerNorm>(shape, context);
}

}  // namespace muster::cuda
