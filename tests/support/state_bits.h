#pragma once

#include "muster/core/nn/model.h"
#include "tests/support/standard.h"

namespace muster::test {

/// Every bit of a model's state but the gradients: parameters, statistics, updater, counters.
inline std::vector<std::byte> stateBits(Model& model) {
  std::vector<std::byte> bits;
  for (const auto* block : model.state()) {
    if (block->kind == BlockKind::Gradients) continue;
    const auto* begin = static_cast<const std::byte*>(block->values.raw());
    bits.insert(bits.end(), begin, begin + block->values.bytes());
  }
  return bits;
}

}  // namespace muster::test
