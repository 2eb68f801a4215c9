#pragma once

#include <functional>

#include "tests/parallel/every_rule.h"

namespace muster::test {

/// A rule that can send with a codec. Its options have none.
struct CodedRule : NamedRule {
  /// The rule with this codec.
  std::function<AnyStrategy(const Codec&)> with;

  /// Whether the rule's options accept the codec.
  bool accepts(const Codec& codec) const {
    try {
      with(codec).validate();
    } catch (const InvalidArgument&) {
      return false;
    }
    return true;
  }
};

/// Adds the rule if its options are of this type and its replicas are sent whole.
template <typename Options>
void addIfCoded(std::vector<CodedRule>& coded, const NamedRule& rule) {
  const Options* const options = rule.options.as<Options>();
  if (options == nullptr || !std::holds_alternative<WholeReplicas>(options->codec)) return;
  coded.push_back({rule, [changed = *options](const Codec& codec) mutable {
                     changed.codec = codec;
                     return AnyStrategy(changed);
                   }});
}

/// Every rule that has a codec among its options: one of each kind; all of them in `./run soak`.
inline std::vector<CodedRule> codedRules() {
  auto rules = everyRule();
  const std::string late = "every=3,delay=2,momentum=0.5";
  for (const auto& [name, strategy, options] :
       {std::tuple("pull", "overlapped", late + ",landing=pull"),
        {"eager, Nesterov", "overlapped", late + ",landing=eager,nesterov=true"},
        {"gossip among all", "gossip", "graph=complete,every=2"},
        {"one level", "hierarchical", "levels=2:all"}})
    rules.push_back({name, strategyNamed(strategy, options, 4)});
  std::vector<CodedRule> coded;
  for (const NamedRule& rule : rules) {
    addIfCoded<Averaging>(coded, rule);
    addIfCoded<OuterAveraging>(coded, rule);
    addIfCoded<ElasticAveraging>(coded, rule);
    addIfCoded<Adasum>(coded, rule);
    addIfCoded<OverlappedAveraging>(coded, rule);
    addIfCoded<StreamingOuter>(coded, rule);
    addIfCoded<Gossip>(coded, rule);
    addIfCoded<HierarchicalAveraging>(coded, rule);
    addIfCoded<AsynchronousOuter>(coded, rule);
  }
  return ofEachKind(std::move(coded));
}

}  // namespace muster::test
