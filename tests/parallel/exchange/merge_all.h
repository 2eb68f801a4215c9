#pragma once

#include <thread>

#include "muster/parallel/exchange/merge_ops.h"

namespace muster::test {

/// Merges all blocks, in one thread per participant. @return the spread of the parameters, if it is measured.
inline Spread mergeAll(Exchange& exchange, const std::vector<double>& weights, bool measure = false,
                       Device device = Device::cpu()) {
  std::vector<Spread> spreads(weights.size());
  Context context(device);
  for (int p = 0; p < exchange.participants(); ++p) exchange.arrive(p, context);
  {
    std::vector<std::jthread> threads;
    for (int p = 0; p < exchange.participants(); ++p)
      threads.emplace_back([&, p] {
        Context own(device);
        exchange.begin(p);
        MergeOps ops(exchange, p, own);
        for (const auto& block : exchange.blocks())
          ops.merge(block, weights,
                    measure && block.kind == BlockKind::Parameters ? &spreads[static_cast<std::size_t>(p)]
                                                                   : nullptr);
        exchange.end(p);
      });
  }
  for (int p = 0; p < exchange.participants(); ++p) exchange.enqueueAfter(p, context);
  exchange.wait();
  Spread total;
  for (const auto& spread : spreads) {
    total.distance += spread.distance;
    total.norm += spread.norm;
  }
  return total;
}

}  // namespace muster::test
