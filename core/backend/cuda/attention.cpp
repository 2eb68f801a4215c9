#include "muster/core/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "muster/core/backend/cuda/kernels/sequence.h"
#include "muster/core/backend/cuda/matmul.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cuda {
namespace {

/// Alignment in bytes of consecutive matrices with this number of elements.
std::uint32_t alignmentOf(std::int64_t elements, MathMode mode) {
  const std::int64_t bytes = elements * (mode == MathMode::BFloat16 ? 2 : 4);
  return bytes % 16 == 0 ? 16 : bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : 2;
}

/// Computes all heads of all sequences at once: queries, keys and values are gathered, so that each kind of
/// product is one call.
class BatchedAttention final : public AttentionPlan {
 public:
  BatchedAttention(const AttentionShape& shape, bool training, MathMode mode, Context& context)
      : shape_(shape),
        context_(context),
        mode_(mode),
        width_(shape.features / shape.heads),
        input_(Tensor::empty({3, heads(), shape.steps, width_}, DType::Float32, context.device())),
        output_(Tensor::empty({heads(), shape.steps, width_}, DType::Float32, context.device())),
        weights_(Tensor::empty({heads(), shape.steps, shape.steps}, DType::Float32, context.device())),
        rows_(part(), stateOf(context), mode),
        otherRows_(part(), stateOf(context), mode),
        square_(weights_.elements(), stateOf(context), mode),
        products_(stateOf(context), mode, squareShape(), Epilogue::None),
        values_(stateOf(context), mode, rowsShape(false), Epilogue::None) {
    if (!training) return;
    gradInput_ = Tensor::empty(input_.shape(), DType::Float32, context.device());
    gradWeights_ = Tensor::empty(weights_.shape(), DType::Float32, context.device());
    transposed_.emplace(stateOf(context), mode, rowsShape(true), Epilogue::None);
  }

  void forward(const Tensor& x, const Tensor& mask, Tensor& y) override {
    expect("x", x, shape_.input());
    expectMask(mask);
    expect("y", y, shape_.output());
    const AttentionCall call = callFor(mask);
    MUSTER_CUDA_CHECK(launchSplitHeads(call, 3, x.data<float>(), input_.data<float>(), stream()));
    products_.run(rows_.of(queries(input_), stream()), otherRows_.of(keys(input_), stream()), nullptr,
                  weights_.data<float>());
    MUSTER_CUDA_CHECK(launchAttentionWeights(call, weights_.data<float>(), stream()));
    values_.run(square_.of(weights_, stream()), rows_.of(values(input_), stream()), nullptr,
                output_.data<float>());
    MUSTER_CUDA_CHECK(launchJoinHeads(call, 1, output_.data<float>(), y.data<float>(), stream()));
  }

  void backward(const Tensor& x, const Tensor& mask, const Tensor& gradY, Tensor& gradX) override {
    require(transposed_.has_value(), "attention: backward() of a plan that is not for training");
    expect("x", x, shape_.input());
    expectMask(mask);
    expect("gradY", gradY, shape_.output());
    expect("gradX", gradX, shape_.input());
    const AttentionCall call = callFor(mask);
    float* const grad = gradWeights_.data<float>();
    MUSTER_CUDA_CHECK(launchSplitHeads(call, 1, gradY.data<float>(), output_.data<float>(), stream()));
    const void* const gradOutput = rows_.of(output_, stream());
    transposed_->run(square_.of(weights_, stream()), gradOutput, nullptr, values(gradInput_));
    products_.run(gradOutput, otherRows_.of(values(input_), stream()), nullptr, grad);
    MUSTER_CUDA_CHECK(launchAttentionWeightsBackward(call, weights_.data<float>(), grad, stream()));
    const void* const gradProducts = square_.of(gradWeights_, stream());
    values_.run(gradProducts, rows_.of(keys(input_), stream()), nullptr, queries(gradInput_));
    transposed_->run(gradProducts, rows_.of(queries(input_), stream()), nullptr, keys(gradInput_));
    MUSTER_CUDA_CHECK(launchJoinHeads(call, 3, gradInput_.data<float>(), gradX.data<float>(), stream()));
  }

 private:
  cudaStream_t stream() const { return stateOf(context_).stream(); }
  std::int64_t heads() const { return shape_.batch * shape_.heads; }
  /// Number of elements of all queries, all keys, or all values.
  std::int64_t part() const { return heads() * shape_.steps * width_; }
  float* queries(const Tensor& all) const { return all.data<float>(); }
  float* keys(const Tensor& all) const { return all.data<float>() + part(); }
  float* values(const Tensor& all) const { return all.data<float>() + 2 * part(); }

  /// The alignment of all factors, in bytes.
  std::uint32_t alignment() const {
    return std::min(alignmentOf(shape_.steps * width_, mode_),
                    alignmentOf(shape_.steps * shape_.steps, mode_));
  }
  /// The product of [steps, width] and [steps, width] transposed.
  MatmulShape squareShape() const {
    return {.rows = shape_.steps,
            .columns = shape_.steps,
            .inner = width_,
            .transposeB = true,
            .batch = heads(),
            .alignment = alignment(),
            .resultAlignment = alignmentOf(shape_.steps * shape_.steps, MathMode::Float32)};
  }
  /// The product of [steps, steps], possibly transposed, and [steps, width].
  MatmulShape rowsShape(bool transpose) const {
    return {.rows = shape_.steps,
            .columns = width_,
            .inner = shape_.steps,
            .transposeA = transpose,
            .batch = heads(),
            .alignment = alignment(),
            .resultAlignment = alignmentOf(shape_.steps * width_, MathMode::Float32)};
  }

  AttentionCall callFor(const Tensor& mask) const {
    return {.batch = shape_.batch,
            .steps = shape_.steps,
            .heads = shape_.heads,
            .width = width_,
            .causal = shape_.causal,
            .scale = 1.0f / std::sqrt(static_cast<float>(width_)),
            .mask = mask.defined() ? mask.data<float>() : nullptr};
  }

  void expect(const char* name, const Tensor& tensor, const Shape& shape) const {
    muster::detail::expectTensor("attention", name, tensor,
                                 {shape, Layout::RowMajor, DType::Float32, context_.device()});
  }
  void expectMask(const Tensor& mask) const {
    if (mask.defined()) expect("mask", mask, {shape_.batch, shape_.steps});
  }

  AttentionShape shape_;
  Context& context_;
  MathMode mode_;       // of the products
  std::int64_t width_;  // of a head
  Tensor input_;        // [3, N * heads, T, width]: queries, keys, values
  Tensor output_;       // [N * heads, T, width], or its gradient
  Tensor weights_;      // [N * heads, T, T]: query, key
  Tensor gradInput_;    // like input_; training only
  Tensor gradWeights_;  // like weights_; training only
  Factor rows_, otherRows_, square_;
  Matmul products_, values_;
  std::optional<Matmul> transposed_;  // training only
};

}  // namespace

std::unique_ptr<AttentionPlan> planAttention(const AttentionShape& shape, bool training, Context& context) {
  return planProducts(stateOf(context), [&](MathMode mode) {
    return std::make_unique<BatchedAttention>(shape, training, mode, context);
  });
}

}  // namespace muster::cuda
