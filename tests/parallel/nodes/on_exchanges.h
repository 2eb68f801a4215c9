#pragma once

#include "muster/parallel/exchange/merge_ops.h"
#include "muster/parallel/nodes/node_exchange.h"
#include "tests/parallel/replicas.h"
#include "tests/support/on_threads.h"
#include "tests/support/virtual_network.h"

namespace muster::test {

/// The exchange of one node, and what it is made of.
struct ExchangeHere {
  int node;
  Replicas& replicas;
  NodeLink& link;
  NodeExchange& exchange;
};

/// The replicas of these workers.
using MakeReplicas = std::function<Replicas(const std::vector<int>& workers)>;

struct ExchangeOptions {
  int local = 1;  ///< workers on each node
  std::chrono::milliseconds silence{30'000};
  std::vector<StrategyBlock> blocks = {};
};

/// Each node's thread makes an exchange and calls `body`. Checks that it throws nothing.
inline void onExchanges(VirtualNetwork& network, const MakeReplicas& make, const ExchangeOptions& options,
                        const std::function<void(const ExchangeHere&)>& body) {
  const auto problems = onThreads(network.nodes(), [&](int n) {
    std::vector<int> own;
    for (int l = 0; l < options.local; ++l) own.push_back(l * network.nodes() + n);
    Replicas replicas = make(own);
    NodeLink link([&network, n] { return network.transport(n); }, options.silence);
    NodeExchange exchange(replicas.states, UpdaterState::Average, link);
    exchange.makeStrategyBlocks(options.blocks);
    exchange.restart();
    body({n, replicas, link, exchange});
  });
  for (const auto& problem : problems) CHECK(problem == "");
}

/// The work of each participant of an exchange that is here, on a thread of its own.
inline void runHere(Exchange& exchange, const std::function<void(MergeOps&)>& work) {
  std::vector<std::jthread> threads;
  for (int p = exchange.node(); p < exchange.participants(); p += exchange.nodes())
    threads.emplace_back([&exchange, &work, p] {
      Context context;
      exchange.begin(p);
      MergeOps ops(exchange, p, context);
      work(ops);
      exchange.end(p);
    });
}

}  // namespace muster::test
