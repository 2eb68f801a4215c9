#include "muster/parallel/strategies/streaming_outer.h"

#include <algorithm>
#include <array>

#include "muster/core/base/plural.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/strategies/option_fields.h"
#include "muster/parallel/strategies/outer_step.h"
#include "muster/parallel/strategies/periodic_strategy.h"
#include "muster/parallel/strategies/saved_numbers.h"

namespace muster {
namespace {

constexpr const char *kStreaming = "streaming outer averaging", *kTurn = "turn";
constexpr int kMostFragments = 64;

/// The numbers of block kTurn.
struct Turn {
  double fragment = 0;  // launched last
  double epoch = 0;     // then
};

/// The merged copy holds W.
class StreamingOuterStrategy final : public PeriodicStrategy<StreamingOuter> {
 public:
  using PeriodicStrategy::PeriodicStrategy;

  std::string describe() const override {
    return fmt::format("{}, each of {} fragments {}, delay {} ({}, mixing {}){}", kStreaming,
                       options_.fragments, options_.frequency.describe(), options_.delay, outer_.describe(),
                       options_.mixing, muster::describe(options_.codec));
  }
  std::vector<StrategyBlock> blocks(int) const override {
    auto blocks = outer_.blocks(/*meanInFlight=*/options_.delay > 0);
    blocks.push_back({.name = kTurn,
                      .place = StrategyBlock::Place::Replica,
                      .numbers = detail::kNumbersOf<Turn>,
                      .counts = true});
    return withCommon(std::move(blocks), /*means=*/true);
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
    const double last = detail::numbersOf<Turn>(turn_).fragment;  // maybe of a rule with more fragments
    detail::requirePossible(last < kMostFragments, kTurn, last, "as the last fragment");
    const SharedBlock& parameters = exchange.block(BlockKind::Parameters);
    const auto tensors = parameters.segments ? parameters.segments->segments.size() : 1;
    const int count = options_.fragments;
    require(count == 1 || tensors >= static_cast<std::size_t>(count),
            "{}: the model has {}, which {} cannot be made of", kStreaming, plural(tensors, "tensor"),
            plural(count, "fragment"));
    fragments_ = count == 1 ? std::vector{parameters.whole} : fragmentsOf(*parameters.segments, count);
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
    auto& [last, epoch] = detail::numbersOf<Turn>(turn_);
    const bool first = progress.rounds == 0 || epoch != static_cast<double>(progress.epoch);
    const int turn = first ? 0 : (static_cast<int>(last) + 1) % options_.fragments;
    last = turn;
    epoch = static_cast<double>(progress.epoch);
    return turn;
  }
  const Fragment& at(int fragment) const { return fragments_[static_cast<std::size_t>(fragment)]; }

  const OuterStep outer_ = OuterStep::of(options_);
  std::vector<Fragment> fragments_;
  Tensor turn_;                                              // the first worker's block kTurn
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
  f.field("fragments", count, "parts of the parameters that are merged in turn, 1 to 64", "[1, 64]");
  fragments = static_cast<int>(std::clamp<std::int64_t>(count, 0, kMostFragments + 1));
  f.field("delay", delay, "iterations from launch to landing, less than every / fragments", "[0, )");
  f.field("mixing", mixing, "share of its own values that a worker keeps, from 0 to 1", "[0, 1]");
  f.field("rate", rate, "outer learning rate, above 0", "(0, )");
  f.field("momentum", momentum, "outer momentum, from 0 to below 1", "[0, 1)");
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
