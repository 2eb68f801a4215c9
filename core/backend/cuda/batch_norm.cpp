#include "muster/core/ops/batch_norm.h"

#include "muster/core/backend/cuda/channel_shape.h"
#include "muster/core/backend/cuda/kernels/norm.h"
#include "muster/core/backend/cuda/state.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cuda {
namespace {

const float* orNull(const Tensor& tensor) {
  return tensor.defined() ? tensor.data<float>() : nullptr;
}

class KernelBatchNorm final : public BatchNormPlan {
 public:
  KernelBatchNorm(const BatchNormShape& shape, Layout layout, Context& context)
      : shape_(shape),
        layout_(layout),
        context_(context),
        channelShape_(channelShapeOf(shape.input, layout)),
        doubles_(bytes(3 * shape.channels(), sizeof(double)), context.device()),
        floats_(bytes(6 * shape.channels(), sizeof(float)), context.device()) {}

  Layout layout() const override { return layout_; }

  void sums(const Tensor& x, Tensor& sums) override {
    expectActivation("x", x);
    expectSums(sums);
    MUSTER_CUDA_CHECK(launchChannelMoments(call(), x.data<float>(), sums.data<double>(), stream()));
  }

  void normalise(const Tensor& x, const Tensor& sums, double count, const Tensor& gamma, const Tensor& beta,
                 Tensor& y) override {
    expectSums(sums);
    expectAffine(gamma, beta);
    MUSTER_CUDA_CHECK(
        launchConstantsOfSums(call(), sums.data<double>(), count, orNull(gamma), orNull(beta), stream()));
    run(x, y);
  }

  void normaliseBy(const Tensor& x, const Tensor& mean, const Tensor& variance, const Tensor& gamma,
                   const Tensor& beta, Tensor& y) override {
    expectChannels("mean", mean);
    expectChannels("variance", variance);
    expectAffine(gamma, beta);
    MUSTER_CUDA_CHECK(launchConstantsOf(call(), mean.data<float>(), variance.data<float>(), orNull(gamma),
                                        orNull(beta), stream()));
    run(x, y);
  }

  void moveStatistics(double momentum, Tensor& mean, Tensor& variance) override {
    expectChannels("mean", mean);
    expectChannels("variance", variance);
    MUSTER_CUDA_CHECK(
        launchMoveStatistics(call(), momentum, mean.data<float>(), variance.data<float>(), stream()));
  }

  void gradientSums(const Tensor& x, const Tensor& gradY, Tensor& sums, Tensor& gradGamma,
                    Tensor& gradBeta) override {
    expectActivation("x", x);
    expectActivation("gradY", gradY);
    expectSums(sums);
    if (gradGamma.defined()) {
      expectChannels("gradGamma", gradGamma);
      expectChannels("gradBeta", gradBeta);
    }
    MUSTER_CUDA_CHECK(launchGradientSums(call(), x.data<float>(), gradY.data<float>(), sums.data<double>(),
                                         gradGamma.defined() ? gradGamma.data<float>() : nullptr,
                                         gradGamma.defined() ? gradBeta.data<float>() : nullptr, stream()));
  }

  void gradient(const Tensor& x, const Tensor& gradY, const Tensor& sums, double count,
                Tensor& gradX) override {
    expectSums(sums);
    runGradient(x, gradY, sums.data<double>(), count, gradX);
  }

  void gradientBy(const Tensor& x, const Tensor& gradY, Tensor& gradX) override {
    runGradient(x, gradY, nullptr, 1, gradX);
  }

 private:
  static std::size_t bytes(std::int64_t numbers, std::size_t size) {
    return static_cast<std::size_t>(numbers) * size;
  }
  cudaStream_t stream() const { return stateOf(context_).stream(); }

  BatchNormCall call() const {
    auto* const wide = reinterpret_cast<double*>(doubles_.data());
    auto* const narrow = reinterpret_cast<float*>(floats_.data());
    const std::int64_t c = shape_.channels();
    return {.shape = channelShape_,
            .constants = {.meanOf = wide,
                          .varianceOf = wide + c,
                          .inverseOf = wide + 2 * c,
                          .mean = narrow,
                          .scale = narrow + c,
                          .shift = narrow + 2 * c,
                          .a = narrow + 3 * c,
                          .b = narrow + 4 * c,
                          .c = narrow + 5 * c},
            .epsilon = shape_.epsilon,
            .relu = shape_.activation == Activation::ReLU,
            .partial = stateOf(context_).partialSums()};
  }

  void run(const Tensor& x, Tensor& y) {
    expectActivation("x", x);
    expectActivation("y", y);
    MUSTER_CUDA_CHECK(launchNormalise(call(), x.data<float>(), y.data<float>(), stream()));
  }

  void runGradient(const Tensor& x, const Tensor& gradY, const double* sums, double count, Tensor& gradX) {
    expectActivation("x", x);
    expectActivation("gradY", gradY);
    expectActivation("gradX", gradX);
    MUSTER_CUDA_CHECK(launchBatchNormGradient(call(), x.data<float>(), gradY.data<float>(), sums, count,
                                              gradX.data<float>(), stream()));
  }

  void expectActivation(const char* name, const Tensor& tensor) const {
    muster::detail::expectTensor("batch_norm", name, tensor,
                                 {shape_.input, layout_, DType::Float32, context_.device()});
  }
  void expectChannels(const char* name, const Tensor& tensor) const {
    muster::detail::expectTensor("batch_norm", name, tensor,
                                 {{shape_.channels()}, Layout::RowMajor, DType::Float32, context_.device()});
  }
  void expectAffine(const Tensor& gamma, const Tensor& beta) const {
    if (gamma.defined()) expectChannels("gamma", gamma);
    if (beta.defined()) expectChannels("beta", beta);
  }
  void expectSums(const Tensor& tensor) const {
    muster::detail::expectTensor(
        "batch_norm", "sums", tensor,
        {{2, shape_.channels()}, Layout::RowMajor, DType::Float64, context_.device()});
  }

  BatchNormShape shape_;
  Layout layout_;
  Context& context_;
  ChannelShape channelShape_;
  Buffer doubles_;  // [3, channels] statistics
  Buffer floats_;   // [6, channels] constants
};

}  // namespace

std::unique_ptr<BatchNormPlan> planBatchNorm(const BatchNormShape& shape, Layout layout, Context& context) {
  require(layout == Layout::RowMajor || layout == Layout::ChannelsLast,
          "batch_norm: on a GPU activations are row-major or channels-last, not {}", nameOf(layout));
  return std::make_unique<KernelBatchNorm>(shape, layout, context);
}

}  // namespace muster::cuda
