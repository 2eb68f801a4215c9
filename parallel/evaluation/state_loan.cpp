#include "muster/parallel/evaluation/state_loan.h"

#include <cstring>
#include <mutex>
#include <utility>

#include "muster/core/base/log.h"
#include "muster/core/device/memory_room.h"

namespace muster {
namespace {

bool sameOnCpu(const Tensor& a, const Tensor& b) {
  return a.device().isCpu() && b.device().isCpu() && std::memcmp(a.raw(), b.raw(), b.bytes()) == 0;
}

/// On the CPU, workers take turns: each checks for room after the copies of the workers before it.
Tensor copyInRoom(const Tensor& values, const std::string& root) {
  static std::mutex mutex;
  std::unique_lock lock(mutex, std::defer_lock);
  if (const auto bytes = static_cast<double>(values.bytes());
      values.device().isCpu() && bytes >= kLargeMemory) {
    lock.lock();
    requireMemoryRoom(bytes, "the state that a replica keeps meanwhile takes", "fewer workers need less",
                      root);
  }
  return cloneTensor(values);
}

}  // namespace

StateLoan::StateLoan(Context& context, std::vector<Block> blocks)
    : context_(context), blocks_(std::move(blocks)) {}

std::vector<StateLoan::Block> StateLoan::keep(Model& replica, std::span<const Tensor> values,
                                              const std::string& root) {
  replica.context().synchronize();
  std::vector<Block> blocks;
  const auto state = replica.state();
  for (std::size_t b = 0; b < state.size(); ++b) {
    if (state[b]->kind == BlockKind::Gradients) continue;
    const Tensor& own = state[b]->values;
    blocks.push_back({own, sameOnCpu(own, values[b]) ? values[b] : copyInRoom(own, root), values[b]});
  }
  return blocks;
}

StateLoan::StateLoan(Model& replica, std::span<const Tensor> values, const std::string& root)
    : StateLoan(replica.context(), keep(replica, values, root)) {
  for (auto& block : blocks_) copy(block.lent, block.values, context_);
  context_.synchronize();
}

StateLoan::~StateLoan() {
  try {
    for (auto& block : blocks_) copy(block.own, block.values, context_);
    context_.synchronize();
  } catch (...) {
    const auto cause = std::current_exception();
    try {
      logWarning("evaluate: a replica could not take back its state: {}", describe(cause));
    } catch (...) {  // no memory for the log line: continue without it
    }
  }
}

}  // namespace muster
