#include "muster/core/backend/cpu/padding.h"

#include <algorithm>

namespace muster::cpu {
namespace {

/// Zeros lanes [used, 16) of each group of sixteen.
void zeroLanes(float* begin, float* end, std::int64_t used) {
  for (float* group = begin; group < end; group += kLayoutBlock)
    std::fill(group + used, group + kLayoutBlock, 0.0f);
}

}  // namespace

void zeroPadding(Tensor& tensor) {
  const Layout layout = tensor.layout();
  if (layout == Layout::RowMajor || layout == Layout::ChannelsLast || tensor.elements() == 0) return;
  const std::int64_t used = tensor.shape()[layout == Layout::SampleBlocks ? 0 : 1] % kLayoutBlock;
  if (used == 0) return;
  // The last `last` floats of each run contain the padding; a run is the whole tensor or one sample.
  const std::int64_t runs = layout == Layout::SampleBlocks ? 1 : tensor.shape()[0];
  const std::int64_t plane = tensor.shape()[2] * tensor.shape()[3] * kLayoutBlock;
  const std::int64_t last = layout == Layout::SampleBlocks ? tensor.shape()[1] * plane : plane;
  const std::int64_t run = tensor.storage() / runs;
  for (std::int64_t i = 1; i <= runs; ++i) {
    float* end = tensor.data<float>() + i * run;
    zeroLanes(end - last, end, used);
  }
}

}  // namespace muster::cpu
