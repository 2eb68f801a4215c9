#pragma once

#include "tests/parallel/one_segment.h"

namespace muster::test {

/// Replicas of the state of some workers, with the blocks that a test names.
class Replicas {
 public:
  struct Block {
    std::string name;
    BlockKind kind;
    MergeRule rule;
    std::int64_t elements;
    DType dtype = DType::Float32;
  };

  /// @param value  of element i of block b of worker w: `double value(int w, std::size_t b, std::int64_t i)`
  template <typename Value>
  Replicas(const std::vector<int>& workers, const std::vector<Block>& blocks, Value value) {
    for (const int w : workers) {
      auto& own = owned.emplace_back();
      for (const auto& [name, kind, rule, elements, dtype] : blocks) {
        StateBlock& block =
            own.emplace_back(StateBlock::zeros(name, kind, rule, oneSegment(elements), dtype));
        for (std::int64_t i = 0; i < elements; ++i)
          if (dtype == DType::Float64)
            block.values.data<double>()[i] = value(w, own.size() - 1, i);
          else
            block.values.data<float>()[i] = static_cast<float>(value(w, own.size() - 1, i));
      }
    }
    for (auto& own : owned) {
      states.emplace_back();
      for (auto& block : own) states.back().push_back(&block);
    }
  }

  float* values(std::size_t replica, std::size_t block = 0) const {
    return owned[replica][block].values.data<float>();
  }

  std::vector<std::vector<StateBlock>> owned;  ///< [replica][block]
  std::vector<std::vector<StateBlock*>> states;
};

/// A block of each kind and rule, except moments.
inline std::vector<Replicas::Block> blocksOfEachKind(std::int64_t elements, DType type = DType::Float32) {
  return {{"parameters", BlockKind::Parameters, MergeRule::Average, elements, type},
          {"own", BlockKind::Statistics, MergeRule::Keep, elements, type},
          {"velocity", BlockKind::UpdaterState, MergeRule::Average, elements, type},
          {"residual", BlockKind::Statistics, MergeRule::Reset, elements, type},
          {"gradients", BlockKind::Gradients, MergeRule::Keep, elements, type}};  // averaged only on request
}

/// The numbers from 0.
inline std::vector<int> firstWorkers(int count) {
  std::vector<int> all;
  for (int w = 0; w < count; ++w) all.push_back(w);
  return all;
}

}  // namespace muster::test
