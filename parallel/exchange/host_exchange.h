#pragma once

#include <vector>

#include "muster/parallel/exchange/exchange.h"

namespace muster {

/// Replicas in the memory of one host. Each participant reduces its own slice of a block, reading all
/// replicas in worker order, so the bits do not depend on who is faster, and the work is shared.
class HostExchange final : public Exchange {
 public:
  /// @param states  [worker] the blocks of each replica that are reduced or merged, alike in number, names
  /// and
  ///                sizes.
  /// @param averageUpdaters  false: the updater's state stays each worker's own.
  HostExchange(const std::vector<std::vector<StateBlock*>>& states, bool averageUpdaters);

  int participants() const override { return participants_; }
  std::span<const SharedBlock> blocks() const override { return blocks_; }
  std::int64_t merge(int participant, const SharedBlock& block, std::span<const double> weights,
                     Context& context, Spread* spread = nullptr) override;
  std::int64_t addEncoded(int participant, const SharedBlock& block,
                          std::span<const ThresholdMessage* const> messages, std::span<const double> weights,
                          Context& context) override;
  std::int64_t addDense(int participant, const SharedBlock& block, std::span<const Tensor> vectors,
                        std::span<const double> weights, Context& context, Spread& spread) override;

 private:
  int participants_;
  std::vector<SharedBlock> blocks_;
};

}  // namespace muster
