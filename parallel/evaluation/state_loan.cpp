#include "muster/parallel/evaluation/state_loan.h"

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"

namespace muster {

StateLoan::StateLoan(Model& replica) : context_(replica.context()) {
  context_.synchronize();
  for (const auto* block : replica.state())
    blocks_.push_back(
        {block->values, block->kind == BlockKind::Gradients ? Tensor() : cloneTensor(block->values)});
}

StateLoan::StateLoan(Model& replica, std::span<const Tensor> values) : StateLoan(replica) {
  for (std::size_t b = 0; b < blocks_.size(); ++b)
    if (blocks_[b].own.defined()) copy(values[b], blocks_[b].values, context_);
  context_.synchronize();
}

StateLoan::~StateLoan() {
  try {
    for (auto& block : blocks_)
      if (block.own.defined()) copy(block.own, block.values, context_);
    context_.synchronize();
  } catch (...) {
    const auto cause = std::current_exception();
    try {
      logWarning("evaluate: a replica could not take back its state: {}", describe(cause));
    } catch (...) {  // no memory for the line: it is lost rather than the process
    }
  }
}

}  // namespace muster
