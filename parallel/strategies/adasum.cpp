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

constexpr std::string_view kOther = "other replica", kSum = "sum";

/// From the products of the moves, factors[w] of each move in their sum.
void findFactors(std::span<const double> products, std::span<double> factors) {
  const std::size_t workers = factors.size();
  const auto product = [&](std::size_t a, std::size_t b, std::size_t size) {  // of two sums of `size` moves
    double sum = 0;
    for (std::size_t v = a; v < a + size; ++v)
      for (std::size_t w = b; w < b + size; ++w) sum += factors[v] * factors[w] * products[v * workers + w];
    return sum;
  };
  std::ranges::fill(factors, 1.0);
  for (std::size_t size = 1; size < workers; size *= 2)
    for (std::size_t a = 0; a < workers; a += 2 * size) {
      const std::size_t b = a + size;
      const double ab = product(a, b, size), aa = product(a, a, size), bb = product(b, b, size);
      const double ofA = std::isnormal(aa) ? 1 - ab / (2 * aa) : 1,
                   ofB = std::isnormal(bb) ? 1 - ab / (2 * bb) : 1;
      for (std::size_t w = a; w < b; ++w) factors[w] *= ofA;
      for (std::size_t w = b; w < b + size; ++w) factors[w] *= ofB;
    }
}

/// What a participant works with.
struct Workplace {
  std::vector<double> products;  // [segment][worker][worker]
  std::vector<double> factors;   // [segment][worker]
};

class AdasumStrategy final : public Strategy {
 public:
  explicit AdasumStrategy(const Adasum& options) : options_(options), period_(options.frequency) {}

  std::string describe() const override {
    return fmt::format("adaptive summation {}", options_.frequency.describe());
  }
  std::vector<StrategyBlock> blocks(int workers) const override {
    require(std::has_single_bit(static_cast<unsigned>(workers)),
            "adasum: workers must be a power of two, which join in pairs, got {}", workers);
    std::vector<StrategyBlock> blocks = {
        {.name = std::string(kOther), .saved = false},
        {.name = std::string(kSum), .dtype = DType::Float64, .saved = false}};
    period_.declare(blocks);
    return blocks;
  }
  UpdaterState updaterState() const override { return options_.updaterState; }
  void begin(const Exchange& exchange) override {
    period_.begin(exchange);
    const SharedBlock& parameters = exchange.block(BlockKind::Parameters);
    workers_ = static_cast<std::size_t>(exchange.participants());
    all_ = Fragment::whole(parameters.mergedCopy().elements());
    segments_.clear();
    for (const Segment& segment : parameters.segments->segments)
      segments_.push_back({{{segment.offset, segment.offset + segment.shape.elements()}}});
    only_.assign(workers_, std::vector<double>(workers_));
    for (std::size_t w = 0; w < workers_; ++w) only_[w][w] = 1;
    workplaces_.assign(workers_, {std::vector<double>(segments_.size() * workers_ * workers_),
                                  std::vector<double>(segments_.size() * workers_)});
  }
  RoundPlan plan(const TrainingProgress& progress) override {
    return {.iterations = period_.iterations(progress)};
  }

  void land(int, const Round& round, Verbs& verbs) override {
    Workplace& own = workplaces_[static_cast<std::size_t>(verbs.participant())];
    const SharedBlock& parameters = verbs.block(BlockKind::Parameters);
    if (workers_ > 1) findProducts(parameters, own.products, verbs);
    const std::size_t square = workers_ * workers_;
    for (std::size_t s = 0; s < segments_.size(); ++s)
      findFactors(std::span(own.products).subspan(s * square, square),
                  std::span(own.factors).subspan(s * workers_, workers_));
    addMoves(parameters, own.factors, verbs);
    verbs.writeBack(parameters.mergedCopies, parameters.replicas, 0, all_);
    verbs.mergeOthers(round.weights);
  }
  std::span<const MergeValue> values() const override {
    double sum = 0, elements = 0;  // every participant's factors are equal, or those of the first count
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      const auto size = static_cast<double>(segments_[s].elements());
      for (const double factor : std::span(workplaces_.front().factors).subspan(s * workers_, workers_))
        sum += size * factor;
      elements += size;
    }
    values_ = {{period_.value(), {"gain", elements > 0 ? sum / elements : 0}}};
    return values_;
  }

 private:
  void findProducts(const SharedBlock& parameters, std::span<double> products, Verbs& verbs) const {
    const auto other = verbs.own(kOther);
    std::ranges::fill(products, 0.0);
    for (std::size_t v = 0; v < workers_; ++v) {
      verbs.mean(parameters.replicas, only_[v], other, all_);  // a copy, also between devices
      verbs.eachShare(all_.elements(), [&](const Share& share) {
        for (const std::size_t w : share.workers)
          if (w <= v)
            for (std::size_t s = 0; s < segments_.size(); ++s) {
              const Slice segment = segments_[s].slices.front();
              const std::int64_t begin = std::max(segment.begin, share.slice.begin),
                                 end = std::min(segment.end, share.slice.end);
              if (begin < end)
                products[(s * workers_ + v) * workers_ + w] += innerProduct(
                    parameters.replicas[w], other[w], parameters.mergedCopies[w], begin, end, share.context);
            }
      });
    }
    verbs.sum(products);
    for (std::size_t s = 0; s < segments_.size(); ++s)
      for (std::size_t v = 0; v < workers_; ++v)
        for (std::size_t w = 0; w < v; ++w)
          products[(s * workers_ + w) * workers_ + v] = products[(s * workers_ + v) * workers_ + w];
  }
  /// The merged copy becomes sum_w f_w x_w + (1 - sum_w f_w) x, which is x + sum_w f_w d_w, and a copy of
  /// what all replicas agree on.
  void addMoves(const SharedBlock& parameters, std::span<const double> factors, Verbs& verbs) const {
    const auto other = verbs.own(kOther), sum = verbs.own(kSum);
    for (std::size_t v = 0; v < workers_; ++v) {
      verbs.mean(parameters.replicas, only_[v], other, all_);
      for (std::size_t s = 0; s < segments_.size(); ++s)  // the first one overwrites the sum
        verbs.combine(sum, {{v > 0 ? 1.0 : 0.0, sum}, {factors[s * workers_ + v], other}}, segments_[s]);
    }
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      double total = 0;
      for (const double factor : factors.subspan(s * workers_, workers_)) total += factor;
      verbs.combine(parameters.mergedCopies, {{1, sum}, {1 - total, parameters.mergedCopies}}, segments_[s]);
    }
  }

  const Adasum options_;
  PeriodState period_;
  std::size_t workers_ = 0;
  Fragment all_;
  std::vector<Fragment> segments_;
  std::vector<std::vector<double>> only_;  // [worker] weights with which this one alone counts
  std::vector<Workplace> workplaces_;      // [participant]
  mutable std::array<MergeValue, 2> values_{};
};

}  // namespace

void Adasum::validate() const {
  frequency.validate("adasum: frequency");
  muster::validate(updaterState);
}

std::unique_ptr<Strategy> Adasum::make() const {
  return std::make_unique<AdasumStrategy>(*this);
}

void Adasum::fields(Fields& f) {
  frequency.fields(f);
  f.field("updaterState", updaterState);
}

std::vector<NamedStrategy> Adasum::named(int) {
  return {{"adasum", "replicas' moves joined in pairs: parallel ones averaged, orthogonal ones added",
           "Maleki et al. 2020", Adasum{}}};
}

}  // namespace muster
