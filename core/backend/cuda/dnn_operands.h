#pragma once

#include "muster/core/backend/cuda/kernels/reorder.h"
#include "muster/core/backend/cuda/owners.h"
#include "muster/core/backend/cuda/state.h"
#include "muster/core/ops/conv2d.h"

namespace muster::cuda {

/// The operands of a convolution as cuDNN takes them: their descriptors, and copies in another order or
/// rounded to bfloat16, where it needs these. By cuDNN's names: x, w and y; a filter is a weight.
class DnnOperands {
 public:
  DnnOperands(const Conv2dShape& shape, Layout layout, MathMode mode, Context& context);

  cudnnTensorDescriptor_t x() const { return x_.get(); }
  cudnnFilterDescriptor_t w() const { return w_.get(); }
  cudnnTensorDescriptor_t y() const { return y_.get(); }

  bool bf16() const { return mode_ == MathMode::BFloat16; }
  bool lastChannels() const { return layout_ == Layout::ChannelsLast; }
  /// Whether an operand is copied: calls at the same time would use the same copies.
  bool copies() const { return bf16() || lastChannels(); }

  /// What a call reads for x, y or a weight; enqueues the copy.
  const void* fromX(const Tensor& x) const { return rounded(x, xPlace_); }
  const void* fromY(const Tensor& y) const { return rounded(y, yPlace_); }
  const void* fromWeight(const Tensor& weight) const;
  /// Where a call writes x, y or the gradient of a weight.
  void* toX(const Tensor& x) const { return bf16() ? xPlace_.rounded() : x.raw(); }
  void* toY(const Tensor& y) const { return bf16() ? yPlace_.rounded() : y.raw(); }
  void* toWeight(const Tensor& gradWeight) const;
  /// Enqueues the copies back from there, if there is a copy.
  void finishX(Tensor& x) const;
  void finishWeight(Tensor& gradWeight) const;

 private:
  /// A copy of a tensor.
  class Place {
   public:
    /// @param ordered  whether it needs a float32 copy in another order.
    Place(std::int64_t elements, bool ordered, bool rounded, Device device);

    float* ordered() const { return reinterpret_cast<float*>(ordered_.data()); }
    void* rounded() const { return rounded_.bytes() > 0 ? rounded_.data() : nullptr; }

   private:
    Buffer ordered_, rounded_;
  };

  const void* rounded(const Tensor& from, const Place& place) const;
  ReorderShape filterOrder(Layout from, Layout to) const;
  cudaStream_t stream() const { return stateOf(context_).stream(); }

  Shape weight_;
  Layout layout_;
  MathMode mode_;
  Context& context_;
  TensorOwner x_, y_;
  FilterOwner w_;
  Place xPlace_, yPlace_, wPlace_;
};

}  // namespace muster::cuda
