#include "muster/parallel/strategies/adasum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/ops/linear_combination.h"
#include "muster/parallel/strategies/named_strategy.h"

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
class AdasumStrategy final : public Strategy {
 public:
  explicit AdasumStrategy(const Adasum& options)
      : options_(options), period_(options.frequency), sending_(options.codec) {}

  std::string whyNotOverNodes() const override { return "its dot products are not added up over nodes yet"; }
  std::string describe() const override {
    return fmt::format("adaptive summation {}{}", options_.frequency.describe(),
                       muster::describe(options_.codec));
  }
  std::vector<StrategyBlock> blocks(int workers) const override {
    require(std::has_single_bit(static_cast<unsigned>(workers)),
            "adasum: workers must be a power of two, which join in pairs, got {}", workers);
    std::vector<StrategyBlock> blocks = {{.name = std::string(kOther), .saved = false}};
    sending_.declare(blocks);
    period_.declare(blocks);
    return blocks;
  }
  UpdaterState updaterState() const override { return options_.updaterState; }
  bool mayThrow() const override { return false; }
  void begin(const Exchange& exchange) override {
    period_.begin(exchange);
    const SharedBlock& parameters = exchange.block(BlockKind::Parameters);
    workers_ = static_cast<std::size_t>(exchange.participants());
    segments_.clear();
    require(parameters.segments != nullptr, "adasum: the model's parameters have no segment table");
    for (const Segment& segment : parameters.segments->segments)
      segments_.push_back({segment.offset, segment.offset + segment.shape.elements()});
    all_ = Fragment::whole(parameters.mergedCopy().elements());
    sending_.begin(exchange, std::span(&all_, 1));
    only_.assign(workers_, std::vector<double>(workers_));
    for (std::size_t w = 0; w < workers_; ++w) only_[w][w] = 1;
    numbers_.assign(workers_, std::vector<double>(3 * segments_.size() * (workers_ / 2)));
    gains_.assign(segments_.size() * workers_, 1.0);
  }
  RoundPlan plan(const TrainingProgress& progress) override {
    return {.iterations = period_.iterations(progress)};
  }

  void land(int, const Round& round, Verbs& verbs) override {
    const SharedBlock& parameters = verbs.block(BlockKind::Parameters);
    takeSent(round.weights, parameters, verbs);
    if (verbs.participant() == 0) std::ranges::fill(gains_, 1.0);
    for (std::size_t distance = 1; distance < workers_; distance *= 2) joinPairs(distance, parameters, verbs);
    verbs.mean(parameters.replicas, only_[0], parameters.mergedCopies, all_);  // a copy
    verbs.writeBack(parameters.mergedCopies, parameters.replicas, 0, all_);
    if (verbs.participant() > 0)  // each worker sends its sum once; worker 0 sends the result
      verbs.countBytes(static_cast<std::int64_t>(parameters.replicas.front().bytes()));
    verbs.mergeOthers(round.weights);
  }
  std::span<const MergeValue> values() const override {
    double sum = 0, elements = 0;
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      const auto size = static_cast<double>(segments_[s].length());
      sum += size * gains_[s * workers_];
      elements += size;
    }
    values_ = {{period_.value(), {"gain", elements > 0 ? sum / elements : 0}}};
    return values_;
  }

 private:
  /// With a codec: replaces each replica by the values that were sent.
  void takeSent(std::span<const double> weights, const SharedBlock& parameters, Verbs& verbs) const {
    if (sending_.whole()) return;
    const auto sent = sending_.send(weights, {{1, parameters.mergedCopies}}, /*remember=*/1, all_, verbs);
    verbs.eachShare(all_.elements(), [&](const Share& share) {
      for (const std::size_t w : share.workers)
        if (weights[w] > 0)
          linearCombination(std::array{Term{1, sent[w]}}, parameters.replicas[w], share.slice.begin,
                            share.slice.end, share.context);
    });
  }
  /// Joins worker 0 with worker `distance`, 2 `distance` with 3 `distance`, ...
  void joinPairs(std::size_t distance, const SharedBlock& parameters, Verbs& verbs) {
    auto& numbers = numbers_[static_cast<std::size_t>(verbs.participant())];
    const std::size_t pairs = workers_ / (2 * distance);
    const auto products = std::span(numbers).first(3 * segments_.size() * pairs);
    std::ranges::fill(products, 0.0);
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      const std::size_t a = 2 * distance * pair;
      const Tensor &x = parameters.replicas[a], &start = parameters.mergedCopies[a];
      const Tensor y = broughtTo(a, a + distance, parameters, verbs);
      eachPart(a, verbs, [&](std::size_t s, Slice part, Context& context) {
        double* const at = &products[3 * (pair * segments_.size() + s)];
        at[0] += innerProduct(x, y, start, part.begin, part.end, context);
        at[1] += innerProduct(x, x, start, part.begin, part.end, context);
        at[2] += innerProduct(y, y, start, part.begin, part.end, context);
      });
    }
    verbs.sum(products);
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      const std::size_t a = 2 * distance * pair, b = a + distance;
      const auto of = [&](std::size_t s) {
        const double* const at = &products[3 * (pair * segments_.size() + s)];
        return Products{.ab = at[0], .aa = at[1], .bb = at[2]};
      };
      const Tensor &x = parameters.replicas[a], &start = parameters.mergedCopies[a];
      const Tensor y = broughtTo(a, b, parameters, verbs);
      eachPart(a, verbs, [&](std::size_t s, Slice part, Context& context) {
        // start + f d_x + g d_y with moves d from the start, written so that equal replicas are copied.
        const double f = of(s).factorOfA(), g = of(s).factorOfB();
        linearCombination(std::array{Term{f, x}, Term{g, y}, Term{1 - f - g, start}}, x, part.begin, part.end,
                          context);
      });
      if (verbs.participant() > 0) continue;
      for (std::size_t s = 0; s < segments_.size(); ++s) {
        double* const gains = &gains_[s * workers_];
        gains[a] = of(s).factorOfA() * gains[a] + of(s).factorOfB() * gains[b];
      }
    }
  }
  /// Replica b on worker a's device.
  Tensor broughtTo(std::size_t a, std::size_t b, const SharedBlock& parameters, Verbs& verbs) const {
    if (parameters.mergedCopies[a].raw() == parameters.mergedCopies[b].raw()) return parameters.replicas[b];
    const std::int64_t before = verbs.bytes();
    verbs.mean(parameters.replicas, only_[b], verbs.own(kOther), all_);  // a copy on every device
    verbs.countBytes(before - verbs.bytes());                            // counted in `land`
    return verbs.own(kOther)[a];
  }
  /// Calls `use` for the participant's part of each segment, on worker w's device.
  template <typename Use>
  void eachPart(std::size_t w, Verbs& verbs, Use use) const {
    verbs.eachShare(all_.elements(), [&](const Share& share) {
      if (std::ranges::find(share.workers, w) == share.workers.end()) return;
      for (std::size_t s = 0; s < segments_.size(); ++s) {
        const Slice part{std::max(segments_[s].begin, share.slice.begin),
                         std::min(segments_[s].end, share.slice.end)};
        if (part.length() > 0) use(s, part, share.context);
      }
    });
  }

  const Adasum options_;
  PeriodState period_;
  CodedReplicas sending_;
  std::size_t workers_ = 0;
  Fragment all_;
  std::vector<Slice> segments_;
  std::vector<std::vector<double>> only_;     // [worker] weights with which only this worker counts
  std::vector<std::vector<double>> numbers_;  // [participant][pair][segment] products
  std::vector<double> gains_;  // [segment][worker] sums of factors; used by the first participant
  mutable std::array<MergeValue, 2> values_{};
};

}  // namespace

void Adasum::validate() const {
  frequency.validate("adasum");
  muster::validate(updaterState);
  muster::validate(codec, "adasum");
}

std::unique_ptr<Strategy> Adasum::make() const {
  return std::make_unique<AdasumStrategy>(*this);
}

void Adasum::fields(Fields& f) {
  frequency.fields(f);
  f.field("updaterState", updaterState);
  codecFields(f, codec);
}

std::vector<NamedStrategy> Adasum::named(int) {
  return {{"adasum", "replicas' moves joined in pairs: parallel ones averaged, orthogonal ones added",
           "Maleki et al. 2020", Adasum{}}};
}

}  // namespace muster
