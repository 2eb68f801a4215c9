#pragma once

#include <fmt/format.h>

#include "muster/core/base/error.h"
#include "muster/parallel/strategies.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "tests/support/standard.h"
#include "tests/support/whole.h"

namespace muster::test {

struct NamedRule {
  std::string name;
  AnyStrategy options;

  /// The smallest number of workers, at least `least`, that the rule can merge.
  int workers(int least) const {
    try {
      options.make()->blocks(least);
    } catch (const InvalidArgument&) {
      return workers(least + 1);
    }
    return least;
  }
};

/// Whether nodes with so many workers in all can train by the rule.
inline bool runsOverNodes(const AnyStrategy& options, int workers) {
  const auto strategy = options.make();
  try {
    strategy->blocks(workers);
  } catch (const InvalidArgument&) {
    return false;
  }
  const auto traits = strategy->traits(workers);
  return !traits.arrivals && traits.whyNotOverNodes.empty();
}

/// A rule that is not in the library: two fragments in turn, launched at the end of a round and landed at the
/// next one. The user's model gets the centre; each replica has a block of its own.
struct TwoHalves {
  double pull = 0.5;      ///< how far the centre moves to the mean
  bool inFlight = false;  ///< says that a replica's own block is in flight
  void validate() const {}
  std::unique_ptr<Strategy> make() const;
};

class TwoHalvesStrategy : public Strategy {
 public:
  explicit TwoHalvesStrategy(const TwoHalves& options) : options_(options), pull_(options.pull) {}
  std::string describe() const override { return "two halves in turn"; }
  std::vector<StrategyBlock> blocks(int) const override {
    return {{.name = "centre", .start = StrategyBlock::Start::Parameters},
            {.name = "mean", .dtype = DType::Float64, .saved = false},
            {.name = "sent", .place = StrategyBlock::Place::Replica, .inFlight = options_.inFlight}};
  }
  StrategyTraits traits(int) const override { return {.fragments = 2, .modelSource = "centre"}; }
  void begin(const Exchange& exchange) override {
    const auto elements = exchange.block(BlockKind::Parameters).mergedCopy().elements();
    halves_ = {{{{0, elements / 2}}}, {{{elements / 2, elements}}}};
  }
  RoundPlan plan(const TrainingProgress& progress) override {
    const int launched = static_cast<int>(progress.iteration / 2 % 2);
    return {.iterations = 2, .launch = FragmentSet::of(launched), .land = FragmentSet::of(1 - launched)};
  }
  void launch(int half, const Round&, MergeOps& ops) override {
    ops.combine(ops.own("sent"), {{1, ops.block(BlockKind::Parameters).replicas}}, part(half));
  }
  void land(int half, const Round& round, MergeOps& ops) override {
    const auto replicas = std::span<const Tensor>(ops.block(BlockKind::Parameters).replicas);
    const auto centre = ops.own("centre"), mean = ops.own("mean"), sent = ops.own("sent");
    ops.mean(sent, round.weights, mean, part(half));
    ops.combine(centre, {{1 - pull_, centre}, {pull_, mean}}, part(half));
    ops.combine(replicas, {{1, centre}, {1, replicas}, {-1, sent}}, part(half));
    if (half == 0) ops.mergeOthers(round.weights);
  }

 private:
  const Fragment& part(int half) const { return halves_[static_cast<std::size_t>(half)]; }

  const TwoHalves options_;
  const double pull_;
  std::vector<Fragment> halves_;
};

inline std::unique_ptr<Strategy> TwoHalves::make() const {
  return std::make_unique<TwoHalvesStrategy>(*this);
}

/// Every averaging rule, with options that merge several times in a short epoch, and a rule of the test. Add
/// one line per new rule. Their models have at least two tensors (`ToyOptions::split`).
inline std::vector<NamedRule> everyRule() {
  const auto rule = [](std::string name, std::string_view strategy, std::string_view options) {
    return NamedRule{std::move(name), strategyNamed(strategy, options, 4)};
  };
  return {rule("averaging", "averaging", "every=3"),
          rule("averaging, updater kept", "averaging", "every=3,updaterState=keep"),
          rule("averaging, updater reset", "averaging", "every=2,updaterState=reset"),
          rule("synchronous gradients", "synchronous", ""),
          rule("shared gradients", "shared", "resynchronizationFrequency=4"),
          rule("outer averaging", "outer", "every=2,rate=0.7,momentum=0.5"),
          rule("slowmo", "outer", "every=2,momentum=0.5,followLearningRate=true"),
          rule("diloco", "outer", "every=3,rate=0.7,momentum=0.9,nesterov=true"),
          rule("elastic averaging", "easgd", "every=3"),
          rule("sma", "sma", ""),
          rule("adasum", "adasum", "every=3"),
          rule("overlapped", "overlapped", "every=3,delay=2"),
          rule("overlap-local-sgd", "overlap-local-sgd", ""),
          rule("eager", "overlapped", "landing=eager,rate=0.7,momentum=0.5"),
          rule("streaming", "streaming", "every=3,fragments=1"),
          rule("streaming, two fragments", "streaming",
               "every=4,fragments=2,rate=0.7,momentum=0.5,nesterov=true"),
          rule("gossip", "gossip", "every=2"),
          rule("gossip on a ring", "gossip", "graph=ring"),
          rule("hierarchical averaging", "hierarchical", "levels=1:2,3:all"),
          rule("asynchronous outer", "asynchronous", "every=2,rate=0.9"),
          rule("delayed Nesterov", "asynchronous",
               "every=2,rate=0.7,momentum=0.5,nesterov=true,staleness=1,grace=0.5"),
          rule("int8 deltas", "outer", "every=2,codec=int8"),
          rule("streaming, int8", "streaming", "every=3,fragments=1,codec=int8"),
          rule("late top-k", "overlapped", "every=3,codec=top-k,codec.share=0.1"),
          rule("adasum, bf16", "adasum", "every=2,codec=bf16"),
          rule("gossip on a ring, int8", "gossip", "graph=ring,every=2,codec=int8"),
          rule("groups, E3M0", "hierarchical", "levels=1:2,3:all,codec=e3m0"),
          rule("asynchronous, top-k", "asynchronous", "every=2,rate=0.7,codec=top-k,codec.share=0.1"),
          {"two halves", TwoHalves{}}};
}

/// A rule's traits, and whether it sends during steps and with a codec, as text.
inline std::string kindOf(const NamedRule& rule) {
  const int workers = rule.workers(4);
  const auto strategy = rule.options.make();
  const StrategyTraits traits = strategy->traits(workers);
  const auto blocks = strategy->blocks(workers);
  std::string text =
      fmt::format("{} {} {} {} {} {} {} {} {} {} {} {}", static_cast<int>(traits.localWork),
                  static_cast<int>(traits.updaterState), traits.fragments, traits.modelSource,
                  traits.arrivals.has_value(), traits.replicasDiffer, traits.extrapolates, traits.mayThrow,
                  traits.mergesBeforeScores, static_cast<bool>(traits.hostBytes),
                  traits.whyNotOverNodes.empty(), std::ranges::any_of(blocks, &StrategyBlock::inFlight));
  text += fmt::format(" {}", std::ranges::any_of(blocks, [](const auto& block) {
                        return block.place == StrategyBlock::Place::Node;
                      }));
  for (const BlockKind used : traits.used) text += fmt::format(" {}", static_cast<int>(used));
  return text;
}

/// The first rule of each kind; every rule in `./run soak`. @tparam Rule  a NamedRule, or a class derived
/// from it
template <typename Rule>
std::vector<Rule> ofEachKind(std::vector<Rule> rules) {
  std::set<std::string> kinds;
  if (!whole()) std::erase_if(rules, [&](const Rule& rule) { return !kinds.insert(kindOf(rule)).second; });
  return rules;
}

/// One rule of each kind, or every rule.
inline std::vector<NamedRule> someRules() {
  return ofEachKind(everyRule());
}

}  // namespace muster::test
