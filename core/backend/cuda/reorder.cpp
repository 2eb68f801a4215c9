#include "muster/core/ops/reorder.h"

#include "muster/core/backend/cuda/kernels/elementwise.h"
#include "muster/core/backend/cuda/kernels/reorder.h"
#include "muster/core/backend/cuda/state.h"

namespace muster::cuda {
namespace {

// The kernels identify layouts by these numbers.
static_assert(static_cast<int>(Layout::RowMajor) == 0 && static_cast<int>(Layout::ChannelsLast) == 1 &&
              static_cast<int>(Layout::ChannelBlocks) == 2 && static_cast<int>(Layout::SampleBlocks) == 3);

template <typename T>
void move(const Tensor& x, Tensor& y, Context& context) {
  const Shape& shape = y.shape();
  const ReorderShape s{
      shape[0],   shape[1], shape[2] * shape[3], static_cast<int>(x.layout()), static_cast<int>(y.layout()),
      y.storage()};
  MUSTER_CUDA_CHECK(launchReorder(x.data<T>(), y.data<float>(), s, stateOf(context).stream()));
}

}  // namespace

void reorder(const Tensor& x, Tensor& y, Context& context) {
  if (x.layout() != y.layout()) return move<float>(x, y, context);
  if (x.raw() != y.raw()) copy(x, y, context);
}

void loadFeatures(const Tensor& x, Tensor& y, Context& context) {
  if (x.dtype() == DType::Float32) return cuda::reorder(x, y, context);
  if (x.layout() != y.layout()) return move<std::uint8_t>(x, y, context);
  MUSTER_CUDA_CHECK(
      launchLoadBytes(x.data<std::uint8_t>(), y.data<float>(), x.storage(), stateOf(context).stream()));
}

void loadIndices(const Tensor& x, Tensor& y, Context& context) {
  if (x.dtype() == DType::Int64) return copy(x, y, context);
  MUSTER_CUDA_CHECK(
      launchWiden(x.data<std::uint8_t>(), y.data<std::int64_t>(), x.elements(), stateOf(context).stream()));
}

}  // namespace muster::cuda
