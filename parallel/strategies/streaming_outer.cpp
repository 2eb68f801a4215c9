#include "muster/parallel/strategies/streaming_outer.h"

#include <algorithm>
#include <array>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/strategies/option_fields.h"
#include "muster/parallel/strategies/outer_step.h"
#include "muster/parallel/strategies/saved_numbers.h"

namespace muster {
namespace {

constexpr std::string_view kStreaming = "streaming outer averaging", kTurn = "turn";
constexpr int kMostFragments = 64;

/// The merged copy holds W.
class StreamingOuterStrategy final : public Strategy {
 public:
  explicit StreamingOuterStrategy(const StreamingOuter& options)
      : options_(options),
        outer_(OuterStep::of(options)),
        period_(options.frequency),
        sending_(options.codec) {}

  std::string describe() const override {
    return fmt::format("{}, each of {} fragments {}, delay {} ({}, mixing {}){}", kStreaming,
                       options_.fragments, options_.frequency.describe(), options_.delay, outer_.describe(),
                       options_.mixing, muster::describe(options_.codec));
  }
  std::vector<StrategyBlock> blocks(int) const override {
    std::vector<StrategyBlock> blocks;
    outer_.declare(blocks, /*meanInFlight=*/options_.delay > 0);
    sending_.declare(blocks, /*means=*/true);
    blocks.push_back(
        {.name = std::string(kTurn), .place = StrategyBlock::Place::Replica, .numbers = 2, .counts = true});
    period_.declare(blocks);
    return blocks;
  }
  StrategyTraits traits(int) const override {
    return {.updaterState = options_.updaterState,
            .fragments = options_.fragments,
            .replicasDiffer = options_.fragments > 1 || options_.delay > 0 || options_.mixing > 0,
            .mayThrow = false};
  }
  void begin(const Exchange& exchange) override {
    period_.begin(exchange);
    turn_ = exchange.strategyBlock(kTurn).values.front();
    const double last = turn_.data<double>()[0];  // maybe of a rule with more fragments
    detail::requirePossible(last < kMostFragments, kTurn, last, "as the last fragment");
    const SharedBlock& parameters = exchange.block(BlockKind::Parameters);
    if (options_.fragments == 1) {
      fragments_ = {Fragment::whole(parameters.mergedCopy().elements())};
      return sending_.begin(exchange, fragments_);
    }
    const auto tensors = parameters.segments ? parameters.segments->segments.size() : 1;
    require(tensors >= static_cast<std::size_t>(options_.fragments),
            "{}: the model has {}, which {} cannot be made of", kStreaming, plural(tensors, "tensor"),
            plural(options_.fragments, "fragment"));
    fragments_ = fragmentsOf(*parameters.segments, options_.fragments);
    sending_.begin(exchange, fragments_);
  }
  void start(MergeOps& ops) override {
    if (outer_.ahead() == 0) return;
    for (const Fragment& fragment : fragments_) outer_.writeBack(0, fragment, ops);
  }
  RoundPlan plan(const TrainingProgress& progress) override {
    values_.front().value = -1;  // listeners have read the values
    if (!progress.inFlight.empty()) {
      period_.passRound(progress);
      return {.iterations = options_.delay, .launch = FragmentSet::none(), .land = progress.inFlight};
    }
    const FragmentSet turn = FragmentSet::of(nextTurn(progress));
    const std::int64_t length = std::max<std::int64_t>(1, period_.iterations(progress) / options_.fragments);
    if (options_.delay == 0 || length <= options_.delay)
      return {.iterations = length, .launch = turn, .land = turn};
    return {.iterations = length - options_.delay, .launch = turn, .land = FragmentSet::none()};
  }
  void launch(int fragment, const Round& round, MergeOps& ops) override {
    outer_.takeMean(sending_, round.weights, 1 - options_.mixing, at(fragment), ops, !round.landsAtOnce);
  }
  void land(int fragment, const Round& round, MergeOps& ops) override {
    outer_.apply(at(fragment), ops);
    outer_.writeBack(options_.mixing, at(fragment), ops);
    if (fragment == options_.fragments - 1) ops.mergeOthers(round.weights);
    if (ops.participant() == 0) values_.front().value = fragment;
  }
  MergeReport report() const override { return {.values = values_}; }

 private:
  /// The fragment to launch next. Each epoch begins with the first fragment.
  int nextTurn(const TrainingProgress& progress) {
    if (!turn_.defined()) return 0;
    auto* const memory = turn_.data<double>();
    const auto epoch = static_cast<double>(progress.epoch);
    const bool first = progress.rounds == 0 || epoch != memory[1];
    const int turn = first ? 0 : (static_cast<int>(memory[0]) + 1) % options_.fragments;
    memory[0] = turn;
    memory[1] = epoch;
    return turn;
  }
  const Fragment& at(int fragment) const { return fragments_[static_cast<std::size_t>(fragment)]; }

  const StreamingOuter options_;
  const OuterStep outer_;
  PeriodState period_;
  CodedReplicas sending_;
  std::vector<Fragment> fragments_;
  Tensor turn_;  // the first worker's block kTurn: the fragment launched last, and its epoch
  std::array<MergeValue, 1> values_ = {{{"fragment", -1}}};  // the first participant writes it in `land`
};

}  // namespace

StreamingOuter StreamingOuter::diloco() {
  return {.frequency = 100,
          .fragments = 4,
          .delay = 5,
          .rate = 0.7,
          .momentum = 0.9,
          .nesterov = true,
          .updaterState = UpdaterState::Keep};
}

void StreamingOuter::validate() const {
  detail::validateParts(*this, kStreaming);
  require(fragments >= 1 && fragments <= kMostFragments, "{}: fragments must be between 1 and {}, got {}",
          kStreaming, kMostFragments, fragments);
  require(frequency.every % fragments == 0, "{}: every must be a multiple of the {} fragments, got {}",
          kStreaming, fragments, frequency.every);
  require(delay >= 0, "{}: delay cannot be negative, got {}", kStreaming, delay);
  require(delay < frequency.every / fragments,
          "{}: delay must be shorter than a fragment's turn of {}, got {}", kStreaming,
          plural(frequency.every / fragments, "iteration"), delay);
  require(mixing >= 0 && mixing <= 1, "{}: mixing must be in [0, 1], got {}", kStreaming, mixing);
  OuterStep::of(*this).validate(kStreaming);
}

std::unique_ptr<Strategy> StreamingOuter::make() const {
  return std::make_unique<StreamingOuterStrategy>(*this);
}

void StreamingOuter::fields(Fields& f) {
  frequency.fields(f);
  std::int64_t count = fragments;
  f.field("fragments", count, "parts of the parameters that are merged in turn, 1 to 64");
  fragments = static_cast<int>(std::clamp<std::int64_t>(count, 0, kMostFragments + 1));
  f.field("delay", delay, "iterations from launch to landing, less than every / fragments");
  f.field("mixing", mixing, "share of its own values that a worker keeps, from 0 to 1");
  f.field("rate", rate, "outer learning rate, above 0");
  f.field("momentum", momentum, "outer momentum, from 0 to below 1");
  f.field("nesterov", nesterov, "the base is the look-ahead point");
  f.field("updaterState", updaterState, detail::kUpdaterStateField);
  codecFields(f, codec);
}

std::vector<NamedStrategy> StreamingOuter::named(int) {
  return {{"streaming", "fragments of the parameters are merged in rotation, and land late",
           "Douillard et al. 2025", StreamingOuter{}},
          {"streaming-diloco", "streaming fragments with DiLoCo's outer optimiser; its workers use AdamW",
           "Douillard et al. 2025", diloco()}};
}

}  // namespace muster
