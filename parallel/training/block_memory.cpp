#include "muster/parallel/training/block_memory.h"

#include <string>

#include "muster/core/base/error.h"

namespace muster {
namespace {

std::vector<const void*> memoryOf(std::span<StateBlock* const> state) {
  std::vector<const void*> memory;
  for (const StateBlock* const block : state) memory.push_back(block->values.raw());
  return memory;
}

void requireSame(std::span<StateBlock* const> now, std::span<const void* const> before,
                 const std::string& whose) {
  for (std::size_t b = 0; b < before.size(); ++b)
    require(now[b]->values.raw() == before[b],
            "the block {} of {} is in other memory than before: blocks() must always return the same memory, "
            "because what is trained in other memory would be lost",
            now[b]->name, whose);
}

}  // namespace

std::vector<StateBlock*> sharedState(Model& model) {
  auto state = model.state();
  std::erase_if(state, [](const StateBlock* b) { return b->kind == BlockKind::Counters; });
  return state;
}

void BlockMemory::add(std::span<StateBlock* const> state) {
  replicas_.push_back(memoryOf(state));
}

void BlockMemory::requireSame(Model& model, std::span<ReplicaThread* const> threads) const {
  const auto before = memoryOf(sharedState(model));
  muster::requireSame(sharedState(model), before, "the model");
  for (std::size_t l = 0; l < threads.size(); ++l)
    muster::requireSame(sharedState(threads[l]->replica()), replicas_[l],
                        fmt::format("the replica of {}", threads[l]->name()));
}

}  // namespace muster
