#include "muster/core/nn/step/kept_statistics.h"

#include <algorithm>

#include "muster/core/base/log.h"

namespace muster::detail {

void KeptStatistics::keep(std::span<StateBlock> blocks, Context& context) {
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const Tensor& values = blocks[b].values;
    if (blocks[b].kind != BlockKind::Statistics) continue;
    if (kept_.size() < blocks.size()) kept_.resize(blocks.size());
    if (!kept_[b].defined()) kept_[b] = Tensor::empty(values.shape(), values.dtype(), values.device());
    copy(values, kept_[b], context);
  }
}

void KeptStatistics::restore(std::span<StateBlock> blocks, Context& context) noexcept {
  try {
    for (std::size_t b = 0; b < std::min(kept_.size(), blocks.size()); ++b)
      if (kept_[b].defined()) copy(kept_[b], blocks[b].values, context);
    context.synchronize();
  } catch (const std::exception& error) {
    logWarning("a model's statistics could not be restored after a step that failed: {}", error.what());
  }
}

}  // namespace muster::detail
