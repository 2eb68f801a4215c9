#include "muster/parallel/strategies/gossip.h"

#include <algorithm>
#include <bit>

#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/strategies/option_fields.h"
#include "muster/parallel/strategies/periodic_strategy.h"
#include "muster/parallel/strategies/saved_numbers.h"

namespace muster {
namespace {

constexpr const char *kRounds = "gossip rounds", *kPublic = "public replicas";

/// The numbers of block kRounds.
struct GossipRounds {
  double finished = 0;
  double sinceMean = 0;  // those since the mean of the replicas was formed
};

/// The worker that sends to `worker`, a power of two before it.
std::size_t exponentialPeer(std::size_t worker, std::size_t workers, std::int64_t round) {
  const auto hops = static_cast<std::int64_t>(std::bit_width(workers - 1));  // powers of two below workers
  const std::size_t hop = std::size_t{1} << (round % hops);
  return (worker + workers - hop) % workers;
}

/// The partner of `worker` by the circle method of round-robin tournaments: the last place is fixed, the
/// others rotate. With an odd number of workers the last place is empty, and its partner is alone.
std::size_t partner(std::size_t worker, std::size_t workers, std::int64_t round) {
  const std::size_t last = workers - 1 + workers % 2;  // also the number of other places, and of rounds
  const auto turn = static_cast<std::size_t>(round % static_cast<std::int64_t>(last));
  const std::size_t other = worker == last ? turn : (2 * turn + last - worker) % last;
  const std::size_t met = other != worker ? other : last;
  return met < workers ? met : worker;
}

/// The merged copy holds the mean of the replicas.
class GossipStrategy final : public PeriodicStrategy<Gossip> {
 public:
  explicit GossipStrategy(const Gossip& options)
      : PeriodicStrategy(options, options.measureDistance ? "distance to the mean" : "") {}

  std::string describe() const override {
    return fmt::format("gossip ({}) {}{}", nameOf(options_.graph), options_.frequency.describe(),
                       muster::describe(options_.codec));
  }
  std::vector<StrategyBlock> blocks(int workers) const override {
    const bool means = averages(static_cast<std::size_t>(workers));
    std::vector<StrategyBlock> blocks = {{.name = kRounds,
                                          .place = StrategyBlock::Place::Replica,
                                          .numbers = detail::kNumbersOf<GossipRounds>,
                                          .counts = true}};
    if (!sending_.whole() && !means)
      blocks.push_back({.name = kPublic,
                        .place = StrategyBlock::Place::Replica,
                        .start = StrategyBlock::Start::Parameters});
    return withCommon(std::move(blocks), means);
  }
  StrategyTraits traits(int) const override {
    const bool differ = options_.graph != GossipGraph::Complete;
    return {.updaterState = options_.updaterState,
            .replicasDiffer = differ,
            .extrapolates = !sending_.whole(),
            .mayThrow = false,
            .whyNotOverNodes = differ && !sending_.whole()
                                   ? "codec: replicas on a ring cannot be sent encoded to other nodes yet; "
                                     "the graph complete accepts a codec"
                                   : ""};
  }
  void begin(const Exchange& exchange) override {
    PeriodicStrategy::begin(exchange);
    const auto workers = static_cast<std::size_t>(exchange.participants());
    mixing_ = Mixing(workers, 3 * workers);
    rounds_ = exchange.strategyBlock(kRounds).values;
    merged_.assign(workers, 0);
    alike_.assign(workers, 1);
    published_ = sending_.sent();
    published_.mergedCopies.clear();
    neighbours_.reserve(workers);
    row_.reserve(workers);
  }
  void prepare(const Round& round) override {
    const GossipRounds before = rounds();
    const double since = before.sinceMean + 1;
    trained_ = std::ranges::any_of(round.weights, [](double weight) { return weight > 0; });
    const bool formsMean = complete() || round.last || since >= static_cast<double>(options_.modelEvery);
    for (const Tensor& one : rounds_)
      detail::numbersOf<GossipRounds>(one) = {before.finished + (trained_ ? 1 : 0), formsMean ? 0 : since};
    if (complete()) return;
    mixing_.clear();
    std::ranges::fill(merged_, 0.0);
    for (std::size_t w = 0; w < merged_.size(); ++w) {
      gossipNeighbourhood(options_.graph, w, merged_.size(), static_cast<std::int64_t>(before.finished),
                          neighbours_);
      double total = 0;
      for (const std::size_t j : neighbours_) total += round.weights[j];
      if (total == 0) {
        merged_[w] += 1;
        continue;
      }
      row_.clear();
      for (const std::size_t j : neighbours_) row_.push_back({j, round.weights[j] / total});
      mixing_.setRow(w, row_);
      for (const auto& [j, factor] : row_) merged_[j] += factor;
    }
    mixing_.setMerged(formsMean ? std::span<const double>(merged_) : std::span<const double>());
  }
  /// Whether there are rounds that the merged copy does not hold.
  bool pending() const override { return !rounds_.empty() && rounds().sinceMean > 0; }
  void land(int, const Round& round, MergeOps& ops) override {
    const SharedBlock& parameters = ops.block(BlockKind::Parameters);
    if (!trained_) {  // the mean was pending; nothing is sent or mixed
      ops.mean(parameters.replicas, alike_, parameters.mergedCopies, all_);
      ops.mixOthers(mixing_);
    } else if (!sending_.whole())
      complete() ? mergeSent(round.weights, parameters, ops) : mixSent(parameters, ops);
    else
      complete() ? ops.mergeState(round.weights) : ops.mixState(mixing_);
    if (measures()) spread(ops) = ops.distance(parameters.replicas, parameters.mergedCopies, all_);
  }

 private:
  const GossipRounds& rounds() const { return detail::numbersOf<GossipRounds>(rounds_.front()); }
  /// Whether all of so many workers are mixed in every round.
  bool averages(std::size_t workers) const { return workers <= 2 || options_.graph == GossipGraph::Complete; }
  bool complete() const { return averages(mixing_.workers()); }

  void mergeSent(std::span<const double> weights, const SharedBlock& parameters, MergeOps& ops) {
    sending_.mean(weights, {{1, parameters.mergedCopies}}, /*remember=*/1, all_, parameters.mergedCopies,
                  ops);
    ops.writeBack(parameters.mergedCopies, parameters.replicas, 0, all_);
    ops.mergeOthers(weights);
  }
  /// All workers send in every round, because mixing, too, moves a replica away from its public copy.
  void mixSent(const SharedBlock& parameters, MergeOps& ops) const {
    const auto replicas = std::span<const Tensor>(parameters.replicas);
    const auto published = ops.own(kPublic);
    const std::int64_t before = ops.bytes();
    const auto sent = sending_.send(alike_, {{1, published}}, /*remember=*/0, all_, ops);
    const std::int64_t saved = ops.bytes() - before;
    ops.combine(published, {{1, sent}}, all_);
    ops.mix(published_, mixing_);
    ops.combineFor([&](std::size_t w) { return !mixing_.row(w).empty(); }, replicas,
                   {{1, replicas}, {-1, published}, {1, sent}});
    if (!mixing_.merged().empty()) ops.mean(replicas, alike_, parameters.mergedCopies, all_);
    const std::int64_t toEach = saved + static_cast<std::int64_t>(replicas.front().bytes());
    constexpr int kNeighbours = 2;
    ops.countBytes(kNeighbours * toEach - (ops.bytes() - before));
    ops.mixOthers(mixing_);
  }

  SharedBlock published_;      // values that were sent, which are then mixed
  std::vector<double> alike_;  // [worker] 1 for each
  // Written between rounds:
  Mixing mixing_;
  bool trained_ = false;        // whether any worker has trained in the round
  std::vector<Tensor> rounds_;  // [worker] the same numbers for all
  std::vector<double> merged_;  // [worker] weights in the mean
  std::vector<std::size_t> neighbours_;
  std::vector<MixingShare> row_;
};

}  // namespace

void gossipNeighbourhood(GossipGraph graph, std::size_t worker, std::size_t workers, std::int64_t round,
                         std::vector<std::size_t>& into) {
  into.clear();
  if (graph == GossipGraph::Complete)
    for (std::size_t w = 0; w < workers; ++w) into.push_back(w);
  else
    into.push_back(worker);
  if (workers == 1) return;
  if (graph == GossipGraph::Exponential) into.push_back(exponentialPeer(worker, workers, round));
  if (graph == GossipGraph::Pairs) into.push_back(partner(worker, workers, round));
  if (graph == GossipGraph::Ring) {
    into.push_back((worker + 1) % workers);
    into.push_back((worker + workers - 1) % workers);
  }
  std::ranges::sort(into);
  into.erase(std::ranges::unique(into).begin(), into.end());  // two workers: one neighbour, twice
}

void Gossip::validate() const {
  require(std::ranges::any_of(EnumNames<GossipGraph>::kNames, [&](auto pair) { return pair.first == graph; }),
          "gossip: there is no graph {}", static_cast<int>(graph));
  detail::validateParts(*this, "gossip");
  detail::requireIterations("gossip: modelEvery", modelEvery);
  require(!measureDistance || modelEvery == 1,
          "gossip: measureDistance needs the mean of the replicas in every round, but modelEvery is {}",
          modelEvery);
  if (sendsWhole(codec) || graph == GossipGraph::Complete) return;
  require(graph == GossipGraph::Ring,
          "gossip: codec cannot be given with the graph {}: in this graph a worker's receivers change, so a "
          "receiver does not know the base of the difference; use ring or complete",
          nameOf(graph));
  requireSentToSome(codec, "gossip");
}

std::unique_ptr<Strategy> Gossip::make() const {
  return std::make_unique<GossipStrategy>(*this);
}

void Gossip::fields(Fields& f) {
  frequency.fields(f);
  f.field("graph", graph, "with whom a replica is mixed");
  f.field("updaterState", updaterState, detail::kUpdaterStateField);
  codecFields(f, codec);
  f.field("modelEvery", modelEvery, "rounds from one mean of the replicas, the user's model, to the next",
          detail::kIterationsRange);
  f.field("measureDistance", measureDistance,
          "reports before each merge how far the replicas are apart; costs one pass");
}

std::vector<NamedStrategy> Gossip::named(int) {
  return {
      {"gossip", "replicas are mixed with those of few others (graph: exponential, ring, pairs, complete)",
       "Assran et al. 2019", Gossip{}},
      {"d-psgd", "gossip on a ring, with the updater's state kept by each worker", "Lian et al. 2017",
       Gossip{.graph = GossipGraph::Ring, .updaterState = UpdaterState::Keep}}};
}

}  // namespace muster
