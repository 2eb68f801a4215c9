#pragma once

#include <cstdint>
#include <memory>

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {
/// The sizes of an attention.
struct AttentionShape {
  std::int64_t batch = 1, steps = 1;
  std::int64_t features = 1;  ///< of all heads together
  std::int64_t heads = 1;     ///< divides the features
  bool causal = false;        ///< a step attends to itself and earlier steps only

  /// Adjacent queries, keys and values of a step, each with its heads in order.
  Shape input() const { return {batch, steps, 3 * features}; }
  Shape output() const { return {batch, steps, features}; }
  /// @throws InvalidArgument naming the sizes.
  void validate() const;
};

/// Scaled dot-product attention planned for one shape: for each head, with d = features / heads,
///   y = softmax(Q K^T / sqrt(d)) V.
/// `forward` keeps what `backward` needs. One thread at a time.
///
/// @param mask  float32 [N, T]: 1 for a real step, 0 for padding; undefined: all are real.
/// Padding gets no weight and gives zeros; so does a step that attends to no real step. Padded rows of the
/// input may hold any finite numbers.
/// Source: Vaswani et al. 2017, "Attention is all you need".
class AttentionPlan {
 public:
  virtual ~AttentionPlan() = default;
  virtual void forward(const Tensor& x, const Tensor& mask, Tensor& y) = 0;
  /// gradX is overwritten, zero for padding. x and mask are those of the last `forward`.
  /// @throws InvalidArgument unless planned for training.
  virtual void backward(const Tensor& x, const Tensor& mask, const Tensor& gradY, Tensor& gradX) = 0;
};

/// @param training  whether `backward` will be called.
/// @throws InvalidArgument for an invalid shape.
std::unique_ptr<AttentionPlan> planAttention(const AttentionShape& shape, bool training, Context& context);

namespace cpu {
std::unique_ptr<AttentionPlan> planAttention(const AttentionShape& shape, bool training, Context& context);
}
namespace cuda {
std::unique_ptr<AttentionPlan> planAttention(const AttentionShape& shape, bool training, Context& context);
}

}  // namespace muster
