#include "tests/fuzz/checkpoint_rules.h"

#include "muster/parallel/strategies/named_strategy.h"

namespace muster::fuzz {
namespace {

/// Options in place of a rule's defaults, so that it merges, launches and lands within a few batches.
std::string quickOptions(const AnyStrategy& rule) {
  static constexpr auto kQuick = std::to_array<std::pair<std::string_view, std::string_view>>(
      {{"every", "2"}, {"delay", "1"}, {"fragments", "1"}, {"levels", "1:1,2:all"}});
  std::string text;
  for (const auto& option : optionsOf(rule))
    for (const auto& [name, value] : kQuick)
      if (option.name == name) text.append(text.empty() ? "" : ",").append(name).append("=").append(value);
  return text;
}

}  // namespace

std::vector<AnyStrategy> namedRules(int workers) {
  std::vector<AnyStrategy> all;
  for (const auto& rule : namedStrategies(workers))
    all.push_back(strategyNamed(rule.name, quickOptions(rule.options), workers));
  return all;
}

std::vector<AnyStrategy> checkpointRules() {
  constexpr int kWorkers = 2;
  auto all = namedRules(kWorkers);
  static constexpr auto kOthers = std::to_array<std::pair<const char*, const char*>>(
      {{"averaging", "every=2,updaterState=keep"},
       {"averaging", "every=2,period=adacomm,period.interval=1"},
       {"averaging", "every=2,period=qsr,period.alpha=0.2"},
       {"averaging", "every=2,period.until=2"},
       {"averaging", "every=2,codec=int8"},
       {"outer", "every=2,codec=top-k,codec.share=0.2,momentum=0.5"},
       {"averaging", "every=2,codec=power-sgd"},
       {"adasum", "every=2,codec=bf16"},
       {"gossip", "graph=ring,codec=e3m0,modelEvery=2"},
       {"streaming", "every=2,fragments=1,delay=1,codec=int8"},
       {"shared", "threshold=fixed,updaterState=keep"},
       {"shared", "threshold=target"},
       {"asynchronous", "every=1,momentum=0.5,speeds=1,0.5"},
       {"asynchronous", "every=1,arrivalsPerStep=2,nesterov=true,momentum=0.5,codec=int8"},
       {"overlapped", "every=2,delay=1,rate=0.7,momentum=0.5,landing=eager"}});
  for (const auto& [name, options] : kOthers) all.push_back(strategyNamed(name, options, kWorkers));
  return all;
}

}  // namespace muster::fuzz
