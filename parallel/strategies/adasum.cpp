#include "muster/parallel/strategies/adasum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/ops/linear_combination.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/strategies/option_fields.h"
#include "muster/parallel/strategies/periodic_strategy.h"

namespace muster {
namespace {

constexpr std::string_view kOther = "other replica";

/// The dot products of a pair, from which its sum is formed.
struct Products {
  double ab = 0, aa = 0, bb = 0;
  double factorOfA() const { return std::isnormal(aa) ? 1 - ab / (2 * aa) : 1; }
  double factorOfB() const { return std::isnormal(bb) ? 1 - ab / (2 * bb) : 1; }
};

/// Works on the replicas pair by pair: a becomes the sum of a and b. Then all replicas take worker 0's
/// values.
class AdasumStrategy final : public PeriodicStrategy {
 public:
  explicit AdasumStrategy(const Adasum& options) : PeriodicStrategy(options), options_(options) {}

  std::string describe() const override {
    return fmt::format("adaptive summation {}{}", options_.frequency.describe(),
                       muster::describe(options_.codec));
  }
  std::vector<StrategyBlock> blocks(int workers) const override {
    require(
        std::has_single_bit(static_cast<unsigned>(workers)),
        "adasum: the number of workers must be a power of two, because workers are merged in pairs, got {}",
        workers);
    std::vector<StrategyBlock> blocks = {{.name = std::string(kOther), .saved = false}};
    sending_.declare(blocks);
    period_.declare(blocks);
    return blocks;
  }
  StrategyTraits traits(int) const override {
    return {.updaterState = options_.updaterState,
            .replicasDiffer = false,
            .mayThrow = false,
            .whyNotOverNodes =
                sending_.whole() ? "" : "with a codec it would still send the sums of pairs unencoded"};
  }
  void begin(const Exchange& exchange) override {
    PeriodicStrategy::begin(exchange);
    const SharedBlock& parameters = exchange.block(BlockKind::Parameters);
    workers_ = static_cast<std::size_t>(exchange.participants());
    nodes_ = static_cast<std::size_t>(exchange.nodes());
    segments_.clear();
    require(parameters.segments != nullptr, "adasum: the model's parameters have no segment table");
    for (const Segment& segment : parameters.segments->segments)
      segments_.push_back({segment.offset, segment.offset + segment.shape.elements()});
    onlyFirst_.assign(workers_, 0.0);
    onlyFirst_.front() = 1;
    std::size_t most = 0;
    for (std::size_t distance = 1; distance < workers_; distance *= 2)
      most = std::max(most, pairsAtOnce(distance));
    numbers_.assign(workers_, {});
    for (std::size_t w = 0; w < workers_; ++w)
      if (exchange.isHere(w)) numbers_[w].resize(3 * segments_.size() * most);
    gains_.assign(segments_.size() * workers_, 1.0);
  }

  void land(int, const Round& round, MergeOps& ops) override {
    const SharedBlock& parameters = ops.block(BlockKind::Parameters);
    takeSent(round.weights, parameters, ops);
    if (isFirstHere(ops)) std::ranges::fill(gains_, 1.0);
    for (std::size_t distance = 1; distance < workers_; distance *= 2) {
      const std::size_t pairs = workers_ / (2 * distance), atOnce = pairsAtOnce(distance);
      for (std::size_t pair = 0; pair < pairs; pair += atOnce)
        joinPairs(distance, pair, std::min(atOnce, pairs - pair), parameters, ops);
    }
    ops.mean(parameters.replicas, onlyFirst_, parameters.mergedCopies, all_);  // a copy
    ops.writeBack(parameters.mergedCopies, parameters.replicas, 0, all_);
    if (sendsSum(static_cast<std::size_t>(ops.participant())))
      ops.countBytes(static_cast<std::int64_t>(parameters.mergedCopy().bytes()));
    ops.mergeOthers(round.weights);
  }
  MergeReport report() const override {
    double sum = 0, elements = 0;
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      const auto size = static_cast<double>(segments_[s].length());
      sum += size * gains_[s * workers_];
      elements += size;
    }
    values_ = {{period_.value(), {"gain", elements > 0 ? sum / elements : 0}}};
    return {.values = values_};
  }

 private:
  /// With a codec: replaces each replica by the values that were sent.
  void takeSent(std::span<const double> weights, const SharedBlock& parameters, MergeOps& ops) const {
    if (sending_.whole()) return;
    const auto sent = sending_.send(weights, {{1, parameters.mergedCopies}}, /*remember=*/1, all_, ops);
    ops.eachShare(all_.elements(), [&](const Share& share) {
      for (const std::size_t w : share.workers)
        if (weights[w] > 0)
          linearCombination(std::array{Term{1, sent[w]}}, parameters.replicas[w], share.slice.begin,
                            share.slice.end, share.context);
    });
  }
  /// Each worker sends its sum once; worker 0 sends the result. Over nodes, workers that join a worker of
  /// their own node send nothing.
  bool sendsSum(std::size_t worker) const {
    const std::size_t distance = worker & (~worker + 1);  // to the worker whose sum includes this one's
    return worker > 0 && (nodes_ == 1 || movesBetweenNodes(distance));
  }
  /// Whether workers of this distance are on different nodes. Nodes are a power of two, as workers are.
  bool movesBetweenNodes(std::size_t distance) const { return distance < nodes_; }
  bool isFirstHere(const MergeOps& ops) const { return static_cast<std::size_t>(ops.participant()) < nodes_; }
  /// All pairs; but over nodes at most one for each node, which has one block for another node's replica.
  std::size_t pairsAtOnce(std::size_t distance) const {
    return movesBetweenNodes(distance) ? std::max<std::size_t>(1, nodes_ / (2 * distance))
                                       : workers_ / (2 * distance);
  }
  /// Joins worker 0 with worker `distance`, 2 `distance` with 3 `distance`, ...: `count` pairs from one on.
  void joinPairs(std::size_t distance, std::size_t from, std::size_t count, const SharedBlock& parameters,
                 MergeOps& ops) {
    auto& numbers = numbers_[static_cast<std::size_t>(ops.participant())];
    const auto products = std::span(numbers).first(3 * segments_.size() * count);
    std::ranges::fill(products, 0.0);
    const auto productsOf = [&](std::size_t pair, std::size_t s) {
      return &products[3 * ((pair - from) * segments_.size() + s)];
    };
    for (std::size_t pair = from; pair < from + count; ++pair) {
      const std::size_t a = 2 * distance * pair;
      const Tensor &x = parameters.replicas[a], &start = parameters.mergedCopies[a];
      const Tensor y = ops.fetch(parameters.replicas, a + distance, a, ops.own(kOther));
      eachPart(a, ops, [&](std::size_t s, Slice part, Context& context) {
        double* const at = productsOf(pair, s);
        at[0] += innerProduct(x, y, start, part.begin, part.end, context);
        at[1] += innerProduct(x, x, start, part.begin, part.end, context);
        at[2] += innerProduct(y, y, start, part.begin, part.end, context);
      });
    }
    ops.allReduce(products);
    for (std::size_t pair = from; pair < from + count; ++pair) {
      const std::size_t a = 2 * distance * pair, b = a + distance;
      const auto of = [&](std::size_t s) {
        const double* const at = productsOf(pair, s);
        return Products{.ab = at[0], .aa = at[1], .bb = at[2]};
      };
      const Tensor &x = parameters.replicas[a], &start = parameters.mergedCopies[a];
      const Tensor y = movesBetweenNodes(distance) ? ops.own(kOther)[a]
                                                   : ops.fetch(parameters.replicas, b, a, ops.own(kOther));
      eachPart(a, ops, [&](std::size_t s, Slice part, Context& context) {
        // start + f d_x + g d_y with moves d from the start, written so that equal replicas are copied.
        const double f = of(s).factorOfA(), g = of(s).factorOfB();
        linearCombination(std::array{Term{f, x}, Term{g, y}, Term{1 - f - g, start}}, x, part.begin, part.end,
                          context);
      });
      if (!isFirstHere(ops)) continue;
      for (std::size_t s = 0; s < segments_.size(); ++s) {
        double* const gains = &gains_[s * workers_];
        gains[a] = of(s).factorOfA() * gains[a] + of(s).factorOfB() * gains[b];
      }
    }
  }
  /// Calls `use` for the participant's part of each segment, on worker w's device.
  template <typename Use>
  void eachPart(std::size_t w, MergeOps& ops, Use use) const {
    ops.eachShare(all_.elements(), [&](const Share& share) {
      if (std::ranges::find(share.workers, w) == share.workers.end()) return;
      for (std::size_t s = 0; s < segments_.size(); ++s) {
        const Slice part{std::max(segments_[s].begin, share.slice.begin),
                         std::min(segments_[s].end, share.slice.end)};
        if (part.length() > 0) use(s, part, share.context);
      }
    });
  }

  const Adasum options_;
  std::size_t workers_ = 0, nodes_ = 1;
  std::vector<Slice> segments_;
  std::vector<double> onlyFirst_;             // [worker] weights with which only worker 0 counts
  std::vector<std::vector<double>> numbers_;  // [participant here][pair][segment] products
  std::vector<double> gains_;  // [segment][worker] sums of factors; used by the first participant here
  mutable std::array<MergeValue, 2> values_{};
};

}  // namespace

void Adasum::validate() const {
  detail::validateParts(*this, "adasum");
}

std::unique_ptr<Strategy> Adasum::make() const {
  return std::make_unique<AdasumStrategy>(*this);
}

void Adasum::fields(Fields& f) {
  frequency.fields(f);
  f.field("updaterState", updaterState, detail::kUpdaterStateField);
  codecFields(f, codec);
}

std::vector<NamedStrategy> Adasum::named(int) {
  return {{"adasum", "replicas' moves joined in pairs: parallel ones averaged, orthogonal ones added",
           "Maleki et al. 2020", Adasum{}}};
}

}  // namespace muster
