#include "muster/parallel/strategies/averaging.h"

#include <vector>

#include "muster/core/base/error.h"

namespace muster {
namespace {

constexpr std::int64_t kMostIterations = std::int64_t{1} << 40;

class AveragingStrategy final : public Strategy {
 public:
  explicit AveragingStrategy(const Averaging& options) : options_(options) {}

  std::string describe() const override {
    const auto frequency = options_.frequency;
    const auto every =
        frequency == 1 ? std::string("every iteration") : fmt::format("every {} iterations", frequency);
    if (options_.synchronousUntil == 0 || frequency == 1) return "averaging " + every;
    return fmt::format("averaging every iteration up to iteration {}, then {}", options_.synchronousUntil,
                       every);
  }
  UpdaterState updaterState() const override { return options_.updaterState; }
  void begin(const Exchange& exchange) override {
    if (options_.measureDivergence) exchange.block(BlockKind::Parameters);  // throws if there is none
    spreads_.resize(static_cast<std::size_t>(exchange.participants()));
  }
  RoundPlan plan(const TrainingProgress& progress) override {
    return {.iterations = progress.iteration < options_.synchronousUntil ? 1 : options_.frequency};
  }
  bool stage(Exchange& exchange, Context& context) override {
    return !options_.measureDivergence && exchange.stage(context);
  }
  void land(int, const Round& round, Verbs& verbs) override {
    auto& spread = spreads_[static_cast<std::size_t>(verbs.participant())];
    verbs.mergeState(round.weights, options_.measureDivergence ? &spread : nullptr);
  }
  double divergence() const override { return relativeDistance(spreads_); }

 private:
  const Averaging options_;
  std::vector<Spread> spreads_;  // [worker] of its slice of the parameters
};

}  // namespace

void Averaging::validate() const {
  require(frequency >= 1, "averagingFrequency must be at least 1, got {}", frequency);
  require(frequency <= kMostIterations, "averagingFrequency must be at most {}, got {}", kMostIterations,
          frequency);
  require(synchronousUntil >= 0, "synchronousUntil cannot be negative, got {}", synchronousUntil);
  muster::validate(updaterState);
}

std::unique_ptr<Strategy> Averaging::make() const {
  return std::make_unique<AveragingStrategy>(*this);
}

}  // namespace muster
