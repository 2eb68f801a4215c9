#include "muster/core/nn/compile/copy_blocks.h"

#include "muster/core/base/error.h"

namespace muster::detail {

void copyBlocks(std::span<StateBlock* const> from, std::span<StateBlock* const> to, bool withUpdaterState) {
  require(to.size() == from.size(), "model: one has {} state blocks, the other {}", to.size(), from.size());
  for (std::size_t i = 0; i < to.size(); ++i) {
    require(to[i]->name == from[i]->name && to[i]->values.shape() == from[i]->values.shape(),
            "model: block {} {} cannot be copied to block {} {}", from[i]->name,
            from[i]->values.shape().toString(), to[i]->name, to[i]->values.shape().toString());
    if (to[i]->kind == BlockKind::Gradients) continue;
    if (to[i]->kind == BlockKind::UpdaterState && !withUpdaterState) continue;
    copy(from[i]->values, to[i]->values);
  }
}

}  // namespace muster::detail
