#include "muster/core/backend/cuda/dnn_operands.h"

#include "muster/core/backend/cuda/dnn_descriptors.h"

namespace muster::cuda {
namespace {

cudnnDataType_t typeOf(MathMode mode) {
  return mode == MathMode::BFloat16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

}  // namespace

DnnOperands::Place::Place(std::int64_t elements, bool ordered, bool rounded, Device device)
    : ordered_(ordered ? static_cast<std::size_t>(elements) * sizeof(float) : 0, device),
      rounded_(rounded ? static_cast<std::size_t>(elements) * 2 : 0, device) {}

DnnOperands::DnnOperands(const Conv2dShape& s, Layout layout, MathMode mode, Context& context)
    : weight_(s.weight()),
      layout_(layout),
      mode_(mode),
      context_(context),
      x_(makeTensor(s.input(), layout, typeOf(mode))),
      y_(makeTensor(s.output(), layout, typeOf(mode))),
      w_(makeFilter(s.weight(), layout, typeOf(mode))),
      xPlace_(s.input().elements(), false, bf16(), context.device()),
      yPlace_(s.output().elements(), false, bf16(), context.device()),
      wPlace_(s.weight().elements(), lastChannels() && !bf16(), bf16(), context.device()) {}

const void* DnnOperands::rounded(const Tensor& from, const Place& place) const {
  if (!bf16()) return from.data<float>();
  MUSTER_CUDA_CHECK(launchToBFloat16(from.data<float>(), place.rounded(), from.elements(), stream()));
  return place.rounded();
}

ReorderShape DnnOperands::filterOrder(Layout from, Layout to) const {
  const Shape& s = weight_;
  return {s[0], s[1], s[2] * s[3], static_cast<int>(from), static_cast<int>(to), s.elements()};
}

/// The weights in the activations' order and the mode's type.
const void* DnnOperands::fromWeight(const Tensor& weight) const {
  if (!lastChannels()) return rounded(weight, wPlace_);
  const ReorderShape order = filterOrder(Layout::RowMajor, Layout::ChannelsLast);
  void* const to = bf16() ? wPlace_.rounded() : wPlace_.ordered();
  MUSTER_CUDA_CHECK(bf16() ? launchReorderToBFloat16(weight.data<float>(), to, order, stream())
                           : launchReorder<float>(weight.data<float>(), wPlace_.ordered(), order, stream()));
  return to;
}

void* DnnOperands::toWeight(const Tensor& gradWeight) const {
  return bf16() ? wPlace_.rounded() : lastChannels() ? wPlace_.ordered() : gradWeight.raw();
}

void DnnOperands::finishX(Tensor& x) const {
  if (bf16())
    MUSTER_CUDA_CHECK(launchFromBFloat16(xPlace_.rounded(), x.data<float>(), x.elements(), stream()));
}

/// The reverse of `fromWeight`.
void DnnOperands::finishWeight(Tensor& gradWeight) const {
  const void* const filter = toWeight(gradWeight);
  float* const to = gradWeight.data<float>();
  if (filter == gradWeight.raw()) return;
  const ReorderShape order = filterOrder(Layout::ChannelsLast, Layout::RowMajor);
  MUSTER_CUDA_CHECK(!lastChannels() ? launchFromBFloat16(filter, to, gradWeight.elements(), stream())
                    : bf16()        ? launchReorderFromBFloat16(filter, to, order, stream())
                             : launchReorder<float>(static_cast<const float*>(filter), to, order, stream()));
}

}  // namespace muster::cuda
