#include "muster/parallel/strategies/adasum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "muster/core/ops/linear_combination.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/strategies/option_fields.h"
#include "muster/parallel/strategies/periodic_strategy.h"

namespace muster {
namespace {

constexpr const char* kOther = "other replica";

/// The dot products of a pair, from which its sum is formed.
struct Products {
  double ab = 0, aa = 0, bb = 0;
  std::pair<double, double> factors() const {
    return {std::isnormal(aa) ? 1 - ab / (2 * aa) : 1, std::isnormal(bb) ? 1 - ab / (2 * bb) : 1};
  }
};

/// Works on the replicas pair by pair: a becomes the sum of a and b. Then all replicas take worker 0's
/// values.
class AdasumStrategy final : public PeriodicStrategy<Adasum> {
 public:
  explicit AdasumStrategy(const Adasum& options) : PeriodicStrategy(options, "gain") {}

  std::string describe() const override {
    return fmt::format("adaptive summation {}{}", options_.frequency.describe(),
                       muster::describe(options_.codec));
  }
  std::vector<StrategyBlock> blocks(int workers) const override {
    require(
        std::has_single_bit(static_cast<unsigned>(workers)),
        "adasum: the number of workers must be a power of two, because workers are merged in pairs, got {}",
        workers);
    return withCommon({{.name = kOther, .saved = false}}, /*means=*/false);
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
    products_.assign(workers_, {});
    for (std::size_t w = 0; w < workers_; ++w)
      if (exchange.isHere(w)) products_[w].resize(segments_.size() * most);
    gains_.assign(segments_.size() * workers_, 1.0);
  }

  void land(int, const Round& round, MergeOps& ops) override {
    const SharedBlock& parameters = ops.block(BlockKind::Parameters);
    if (!sending_.whole()) {
      const auto sent =
          sending_.send(round.weights, {{1, parameters.mergedCopies}}, /*remember=*/1, all_, ops);
      ops.combineFor([&](std::size_t w) { return round.weights[w] > 0; }, parameters.replicas, {{1, sent}});
    }
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

 private:
  double measured() const override {
    double sum = 0, elements = 0;
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      const auto size = static_cast<double>(segments_[s].length());
      sum += size * gains_[s * workers_];
      elements += size;
    }
    return elements > 0 ? sum / elements : 0;
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
    const std::size_t segments = segments_.size();
    auto& own = products_[static_cast<std::size_t>(ops.participant())];
    const auto products = std::span(own).first(segments * count);  // [pair][segment]
    std::ranges::fill(products, Products{});
    for (std::size_t pair = 0; pair < count; ++pair) {
      const std::size_t a = 2 * distance * (from + pair);
      const Tensor &x = parameters.replicas[a], &start = parameters.mergedCopies[a];
      const Tensor y = ops.fetch(parameters.replicas, a + distance, a, ops.own(kOther));
      eachPart(a, ops, [&](std::size_t s, Slice part, Context& context) {
        auto& [ab, aa, bb] = products[pair * segments + s];
        ab += innerProduct(x, y, start, part.begin, part.end, context);
        aa += innerProduct(x, x, start, part.begin, part.end, context);
        bb += innerProduct(y, y, start, part.begin, part.end, context);
      });
    }
    ops.allReduce({reinterpret_cast<double*>(products.data()), 3 * products.size()});
    for (std::size_t pair = 0; pair < count; ++pair) {
      const std::size_t a = 2 * distance * (from + pair), b = a + distance;
      const Tensor &x = parameters.replicas[a], &start = parameters.mergedCopies[a];
      const Tensor y = movesBetweenNodes(distance) ? ops.own(kOther)[a]
                                                   : ops.fetch(parameters.replicas, b, a, ops.own(kOther));
      eachPart(a, ops, [&](std::size_t s, Slice part, Context& context) {
        // start + f d_x + g d_y with moves d from the start, written so that equal replicas are copied.
        const auto [f, g] = products[pair * segments + s].factors();
        linearCombination(std::array{Term{f, x}, Term{g, y}, Term{1 - f - g, start}}, x, part.begin, part.end,
                          context);
      });
      for (std::size_t s = 0; s < segments && isFirstHere(ops); ++s) {
        const auto [f, g] = products[pair * segments + s].factors();
        double* const gains = &gains_[s * workers_];
        gains[a] = f * gains[a] + g * gains[b];
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

  std::size_t workers_ = 0, nodes_ = 1;
  std::vector<Slice> segments_;
  std::vector<double> onlyFirst_;                // [worker] weights with which only worker 0 counts
  std::vector<std::vector<Products>> products_;  // [participant here][pair][segment]
  std::vector<double> gains_;  // [segment][worker] sums of factors; used by the first participant here
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
