#include "muster/parallel/strategies/hierarchical_averaging.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "muster/core/base/comma_list.h"
#include "muster/core/base/plural.h"
#include "muster/parallel/strategies/coded_replicas.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/strategies/option_fields.h"
#include "muster/parallel/strategies/period.h"
#include "muster/parallel/strategies/saved_numbers.h"

namespace muster {
namespace {

constexpr const char* kTrained = "trained since merges";

class HierarchicalAveragingStrategy final : public Strategy {
 public:
  explicit HierarchicalAveragingStrategy(const HierarchicalAveraging& options)
      : options_(options), sending_(options.codec) {
    for (std::size_t l = 0; l < levels(); ++l) bases_.push_back(fmt::format("sent from at level {}", l));
  }

  std::string describe() const override {
    std::string text;
    for (const auto& [period, group] : options_.levels)
      text += fmt::format("{} {} {}", text.empty() ? "averaging" : ",",
                          group == 0 ? std::string("all") : fmt::format("groups of {}", group),
                          Period(period).describe());
    return text + muster::describe(options_.codec);
  }
  std::vector<StrategyBlock> blocks(int workers) const override {
    groupsOf(workers);
    std::vector<StrategyBlock> blocks = {{.name = kTrained,
                                          .place = StrategyBlock::Place::Replica,
                                          .numbers = static_cast<std::int64_t>(levels()) + 1}};
    sending_.declare(blocks);
    for (std::size_t l = 0; l < levels() && !sending_.whole(); ++l)
      blocks.push_back({.name = bases_[l],
                        .place = StrategyBlock::Place::Replica,
                        .start = StrategyBlock::Start::Parameters});
    return blocks;
  }
  StrategyTraits traits(int) const override {
    return {.updaterState = options_.updaterState,
            .replicasDiffer = levels() > 1,
            .extrapolates = !sending_.whole(),
            .mayThrow = false,
            .whyNotOverNodes = sending_.whole()
                                   ? ""
                                   : "codec: replicas of groups cannot be sent encoded to other nodes yet; "
                                     "with one level, Averaging accepts a codec"};
  }
  void begin(const Exchange& exchange) override {
    groups_ = groupsOf(exchange.participants());
    const std::size_t workers = groups_.back();
    numbers_ = exchange.strategyBlock(kTrained).values;
    for (const Tensor& numbers : numbers_) {
      for (const double weight : numbers.span<double>().first(levels()))
        detail::requireNotNegative(kTrained, weight, "as a weight");
      detail::requireCount(kTrained, numbers.data<double>()[levels()], "iterations");
    }
    weights_.assign(workers, 0);
    groupsWeights_.assign(workers, 0);
    all_ = Fragment::whole(exchange.block(BlockKind::Parameters).mergedCopy().elements());
    sending_.begin(exchange, std::span(&all_, 1));
    mixing_ = Mixing(workers, workers);
    row_.reserve(workers);
    setMembers(static_cast<std::size_t>(exchange.topology().senders));
  }
  void start(MergeOps& ops) override {
    for (double& number : numbers_[static_cast<std::size_t>(ops.participant())].span<double>()) number = 0;
  }
  RoundPlan plan(const TrainingProgress&) override {
    const std::int64_t done = numbers_.empty() ? 0 : iterations();
    std::int64_t next = detail::kMostIterations;
    for (const auto& level : options_.levels) next = std::min(next, level.period - done % level.period);
    return {.iterations = next};
  }
  void prepare(const Round& round) override {
    const std::int64_t done = iterations() + round.planned;
    const std::size_t top = levels() - 1;
    std::size_t level = top;  // the highest whose period divides `done`, or 0, as in a damaged file
    while (!round.last && level > 0 && done % options_.levels[level].period != 0) --level;
    level_ = level;
    for (std::size_t w = 0; w < weights_.size(); ++w) {
      for (std::size_t l = 0; l <= top; ++l) trained(l, w) += round.weights[w];
      weights_[w] = trained(0, w);
      numbers_[w].data<double>()[levels()] = level == top ? 0 : static_cast<double>(done);
    }
    for (std::size_t l = 1; l <= level; ++l) raiseWeights(l);
    group_.value = static_cast<double>(groups_[level]);
    groupsWeights_ = weights_;
    if (!mergesAll()) {
      setRows(level);
      for (std::size_t l = level + 1; l <= top; ++l) raiseWeights(l);
      mixing_.setMerged(withinNodes(level) ? std::span<const double>() : std::span<const double>(weights_));
    }
    for (std::size_t w = 0; w < weights_.size(); ++w)
      for (std::size_t l = 0; l <= level; ++l) trained(l, w) = 0;
  }
  void land(int, const Round&, MergeOps& ops) override {
    if (!sending_.whole()) return landSent(ops);
    mergesAll() ? ops.mergeState(weights_) : ops.mixState(mixing_);
  }
  bool pending() const override {
    for (std::size_t w = 0; w < numbers_.size(); ++w)
      if (trained(levels() - 1, w) > 0) return true;
    return false;
  }
  MergeReport report() const override { return {.values = {&group_, 1}}; }

 private:
  /// [level] @throws InvalidArgument unless each size divides the next, and the last is that of all workers.
  std::vector<std::size_t> groupsOf(int workers) const {
    std::vector<std::size_t> groups;
    for (const auto& level : options_.levels)
      groups.push_back(static_cast<std::size_t>(level.group == 0 ? workers : level.group));
    const auto all = static_cast<std::size_t>(workers);
    require(groups.back() == all,
            "hierarchical averaging: the last level must merge all {}, got groups of {}",
            plural(all, "worker"), groups.back());
    for (std::size_t l = 0; l + 1 < groups.size(); ++l)
      require(groups[l + 1] % groups[l] == 0, "hierarchical averaging: groups of {} do not divide {}",
              groups[l],
              groups[l + 1] == all ? fmt::format("the {} workers", all)
                                   : fmt::format("groups of {}", groups[l + 1]));
    return groups;
  }
  std::size_t levels() const { return options_.levels.size(); }
  /// What worker w has trained since the last merge of this level or a higher one.
  double& trained(std::size_t level, std::size_t w) const { return numbers_[w].data<double>()[level]; }
  std::int64_t iterations() const {  // since all workers were merged
    return static_cast<std::int64_t>(numbers_.front().data<double>()[levels()]);
  }
  bool mergesAll() const { return groups_[level_] == groups_.back(); }
  /// Each worker sends its change since the last merge of this level or a higher one: the whole group knows
  /// the result of that merge.
  void landSent(MergeOps& ops) const {
    const SharedBlock& parameters = ops.block(BlockKind::Parameters);
    const auto replicas = std::span<const Tensor>(parameters.replicas);
    const auto base = ops.own(bases_[level_]);
    const auto sent = sending_.send(groupsWeights_, {{1, base}}, /*remember=*/1, all_, ops);
    if (mergesAll()) {
      ops.mean(sent, weights_, parameters.mergedCopies, all_);
      ops.writeBack(parameters.mergedCopies, replicas, 0, all_);
      ops.mergeOthers(weights_);
    } else {
      // For the merged copy:
      ops.combineFor([&](std::size_t w) { return groupsWeights_[w] == 0; }, sent, {{1, replicas}});
      ops.mix(sending_.sent(), mixing_);
      ops.combineFor([&](std::size_t w) { return !mixing_.row(w).empty(); }, replicas, {{1, sent}});
      ops.mixOthers(mixing_);
    }
    for (std::size_t l = 0; l <= level_; ++l) ops.combine(ops.own(bases_[l]), {{1, replicas}}, all_);
  }
  /// Divides the workers, counted node by node, into groups. @param nodes  worker w is on node w mod this.
  void setMembers(std::size_t nodes) {
    workersOfNode_ = groups_.back() / nodes;
    std::vector<std::size_t> byNode;
    for (std::size_t n = 0; n < nodes; ++n)
      for (std::size_t w = n; w < groups_.back(); w += nodes) byNode.push_back(w);
    members_.assign(levels(), byNode);
    for (std::size_t l = 0; l < levels(); ++l)
      for (std::size_t first = 0; first < byNode.size(); first += groups_[l])
        std::ranges::sort(std::span(members_[l]).subspan(first, groups_[l]));
  }
  /// Whether each group of the level is on one of several nodes, or in one of several groups of the builder.
  bool withinNodes(std::size_t level) const {
    return workersOfNode_ > 1 && workersOfNode_ < groups_.back() && workersOfNode_ % groups_[level] == 0;
  }
  /// A group's workers, ascending. @param first  the workers of the groups before it.
  std::span<const std::size_t> groupAt(std::size_t level, std::size_t first) const {
    return std::span(members_[level]).subspan(first, groups_[level]);
  }
  /// Turns weights in a merge of the level below into those in a merge of this level: each group of the level
  /// below gets the weight of what it has trained since this level merged. If none of its workers has trained
  /// since the group was merged, their replicas are equal.
  void raiseWeights(std::size_t level) {
    const std::size_t below = level - 1;
    for (std::size_t first = 0; first < weights_.size(); first += groups_[below]) {
      double before = 0, now = 0;
      for (const std::size_t w : groupAt(below, first)) {
        before += weights_[w];
        now += trained(level, w);
      }
      for (const std::size_t w : groupAt(below, first))
        weights_[w] = before > 0 ? weights_[w] * (now / before) : now / static_cast<double>(groups_[below]);
    }
  }
  void setRows(std::size_t level) {
    mixing_.clear();
    for (std::size_t first = 0; first < weights_.size(); first += groups_[level]) {
      const auto group = groupAt(level, first);
      double total = 0;
      for (const std::size_t w : group) total += weights_[w];
      if (total == 0) continue;
      row_.clear();
      for (const std::size_t w : group) row_.push_back({w, weights_[w] / total});
      mixing_.setRow(group.front(), row_);
      for (const std::size_t w : group.subspan(1)) mixing_.shareRow(w, group.front());
    }
  }

  const HierarchicalAveraging options_;
  CodedReplicas sending_;
  std::vector<std::string> bases_;  // [level] names of blocks
  Fragment all_;
  std::size_t workersOfNode_ = 1;
  std::vector<std::size_t> groups_;                // [level] workers in a group
  std::vector<std::vector<std::size_t>> members_;  // [level] the workers, group after group, each ascending
  // Written between rounds:
  std::vector<Tensor> numbers_;  // [worker] `trained` for each level, then `iterations`
  std::vector<double> weights_;  // [worker] weights in the merge of a level
  Mixing mixing_;
  std::vector<MixingShare> row_;
  std::size_t level_ = 0;              // the level that merges
  std::vector<double> groupsWeights_;  // [worker] weights in that merge
  MergeValue group_{"group", 0};
};

std::vector<HierarchicalAveraging::Level> levelsFrom(std::string_view text) {
  std::vector<HierarchicalAveraging::Level> levels;
  if (text.empty()) return levels;
  for (const auto item : commaList(text)) {
    auto& [period, group] = levels.emplace_back();
    const auto colon = std::min(item.find(':'), item.size());
    const auto workers = item.substr(std::min(colon + 1, item.size()));
    require(detail::readNumber(item.substr(0, colon), period) &&
                (workers == "all" || detail::readNumber(workers, group)),
            "levels: expected period:workers, as in 4:2,16:all, got \"{}\"", item);
  }
  return levels;
}

}  // namespace

void HierarchicalAveraging::validate() const {
  require(!levels.empty(), "hierarchical averaging: there are no levels");
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const auto [period, group] = levels[l];
    detail::requireIterations("hierarchical averaging: a period", period);
    require(l == 0 || period >= levels[l - 1].period,
            "hierarchical averaging: periods must ascend, got {} after {}", period,
            l == 0 ? 0 : levels[l - 1].period);
    require(group >= 0, "hierarchical averaging: a group must have at least 1 worker (0: all), got {}",
            group);
  }
  muster::validate(updaterState);
  muster::validate(codec, "hierarchical averaging");
  if (levels.size() > 1) requireSentToSome(codec, "hierarchical averaging");
}

void HierarchicalAveraging::fields(Fields& f) {
  std::string text;
  for (const auto& [period, group] : levels)
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", period,
                        group == 0 ? "all" : fmt::format("{}", group));
  f.field("levels", text, "period:group for each level, as in 4:2,16:all; the last merges all");
  levels = levelsFrom(text);
  f.field("updaterState", updaterState, detail::kUpdaterStateField);
  codecFields(f, codec);
}

std::vector<NamedStrategy> HierarchicalAveraging::named(int workers) {
  HierarchicalAveraging halves;
  if (workers % 2 == 0) halves.levels = {{.period = 1, .group = workers / 2}, {.period = 4}};
  return {{"hierarchical", "averages in groups that grow: each level has a period and a number of workers",
           "PyTorch", halves}};
}

std::unique_ptr<Strategy> HierarchicalAveraging::make() const {
  return std::make_unique<HierarchicalAveragingStrategy>(*this);
}

}  // namespace muster
