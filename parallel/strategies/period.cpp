#include "muster/parallel/strategies/period.h"

#include <algorithm>
#include <cmath>

#include "muster/parallel/strategies/option_fields.h"
#include "muster/parallel/strategies/saved_numbers.h"

namespace muster {
namespace {

using detail::kMostIterations, detail::requireIterations;

constexpr const char* kMemory = "AdaComm";
/// An upper bound of the relative error of a quotient of two rounded numbers, its power and a product.
constexpr double kRounding = 1e-12;

/// Extends the mean over `before` iterations by `more` iterations with `score`. The mean of equal scores is
/// exactly that score.
void addScore(double& mean, double before, double score, double more) {
  mean += (score - mean) * (more / (before + more));
}

/// AdaComm's state, in the layout of its block. All 0 before the first round.
struct Memory {
  double period = 0;       // at least 1; 0: not set yet
  double firstScore = 0;   // of the first round; 0: none yet
  double firstRate = 0;    // learning rate of the first round
  double seen = 0;         // iterations that the model had finished at the last call
  double rounds = 0;       // in this interval
  double iterations = 0;   // in this interval
  double score = 0;        // mean over these iterations
  double passed = 0;       // iterations of rounds without a merge since the last merge
  double passedScore = 0;  // mean over these iterations

  /// Counts the last round. @return false if nothing was trained in it.
  bool passRound(const TrainingProgress& progress) {
    const double own = static_cast<double>(progress.iteration) - seen;
    if (progress.rounds == 0 || own <= 0) return false;
    addScore(passedScore, passed, progress.score, own);
    passed += own;
    seen = static_cast<double>(progress.iteration);
    return true;
  }
  /// Counts the rounds since the last merge as one.
  void countRound() {
    if (firstScore == 0) firstScore = passedScore;
    ++rounds;
    addScore(score, iterations, passedScore, passed);
    iterations += passed;
    passed = passedScore = 0;
  }
  void adapt(const AdaComm& rule, std::int64_t every) {
    if (firstScore > 0) {
      const auto whole = [](double count) { return std::ceil(count * (1 - kRounding)); };
      const double wanted = std::sqrt(std::max(score, 0.0) / firstScore) * static_cast<double>(every);
      const bool taken = rule.shrink == 1 || whole(wanted) < whole(period);
      period = std::max(1.0, taken ? wanted : rule.shrink * period);
    }
    rounds = iterations = score = 0;
  }
};

std::string everyText(std::int64_t iterations) {
  return iterations == 1 ? "every iteration" : fmt::format("every {} iterations", iterations);
}

/// Converts a number of iterations, which may be infinite. @param whole  not NaN.
std::int64_t clamped(double whole, std::int64_t least) {
  if (whole >= static_cast<double>(kMostIterations)) return kMostIterations;
  return std::max(least, static_cast<std::int64_t>(whole));
}

}  // namespace

Period Period::postLocal(std::int64_t iterations, Period then) {
  then.until = iterations;
  then.first = 1;
  return then;
}

Period Period::qsr(std::int64_t least, QuadraticSynchronisation options) {
  Period period(least);
  period.adapted = options;
  return period;
}

Period Period::adaComm(std::int64_t first, AdaComm options) {
  Period period(first);
  period.adapted = options;
  return period;
}

void Period::validate(std::string_view rule) const {
  requireIterations(fmt::format("{}: every", rule), every);
  requireIterations(fmt::format("{}: period.first", rule), first);
  require(until >= 0, "{}: period.until cannot be negative, got {}", rule, until);
  require(untilEpoch >= 0, "{}: period.untilEpoch cannot be negative, got {}", rule, untilEpoch);
  if (const auto* qsr = std::get_if<QuadraticSynchronisation>(&adapted)) {
    require(std::isfinite(qsr->alpha) && qsr->alpha >= 0, "{}: period.alpha must be at least 0, got {}", rule,
            qsr->alpha);
    require(std::isfinite(qsr->power) && qsr->power > 0, "{}: period.power must be above 0, got {}", rule,
            qsr->power);
  }
  if (const auto* adaComm = std::get_if<AdaComm>(&adapted)) {
    requireIterations(fmt::format("{}: period.interval", rule), adaComm->interval);
    require(adaComm->shrink > 0 && adaComm->shrink <= 1, "{}: period.shrink must be in (0, 1], got {}", rule,
            adaComm->shrink);
  }
}

std::string Period::describe() const {
  auto text = everyText(every);
  if (const auto* qsr = std::get_if<QuadraticSynchronisation>(&adapted))
    text += fmt::format(" or more (QSR, alpha {})", qsr->alpha);
  if (std::holds_alternative<AdaComm>(adapted)) text += " at first (AdaComm)";
  if ((until == 0 && untilEpoch == 0) || (constant() && first == every)) return text;
  auto end = until > 0 ? fmt::format("iteration {}", until) : std::string();
  if (untilEpoch > 0) end += fmt::format("{}epoch {}", end.empty() ? "" : " and ", untilEpoch);
  return fmt::format("{} up to {}, then {}", everyText(first), end, text);
}

void Period::fields(Fields& f) {
  f.field("every", every, "iterations of each worker between merges", detail::kIterationsRange);
  f.describe(
      "fixed, or adapted: qsr (with period.alpha, period.power) or adacomm (with period.interval, "
      "period.shrink)");
  detail::variantField(f, "period", adapted, {"fixed", "qsr", "adacomm"}, [this](Fields& inside, auto& rule) {
    if constexpr (requires { rule.alpha; }) {
      inside.field("alpha", rule.alpha,
                   "a round has (alpha / learning rate)^power iterations; 0: always every", "[0, )");
      inside.field("power", rule.power, "above 0; 3 is the cubic rule", "(0, )");
    }
    if constexpr (requires { rule.shrink; }) {
      inside.field("interval", rule.interval, "rounds from one adaptation to the next",
                   detail::kIterationsRange);
      inside.field("shrink", rule.shrink,
                   "factor of the period if the score does not fall, above 0, at most 1", "(0, 1]");
    }
    inside.field("until", until, "until so many iterations a round has first iterations; 0: not", "[0, )");
    inside.field("untilEpoch", untilEpoch, "until so many epochs a round has first iterations; 0: not",
                 "[0, )");
    inside.field("first", first, "iterations of a round in the first part", detail::kIterationsRange);
  });
}

std::int64_t Period::at(const TrainingProgress& now) const {
  if (inFirstPart(now)) {
    const auto left = until - now.iteration;  // a round does not go beyond the first part
    return left > 0 ? std::min(first, left) : first;
  }
  const auto* const qsr = std::get_if<QuadraticSynchronisation>(&adapted);
  if (qsr == nullptr || qsr->alpha == 0) return every;
  const double wanted = std::pow(qsr->alpha / std::max(0.0, now.learningRate), qsr->power);
  return clamped(std::floor(wanted * (1 + kRounding)), every);
}

void PeriodState::declare(std::vector<StrategyBlock>& blocks) const {
  if (!std::holds_alternative<AdaComm>(period_.adapted)) return;
  blocks.push_back(
      {.name = kMemory, .place = StrategyBlock::Place::Replica, .numbers = detail::kNumbersOf<Memory>});
}

void PeriodState::begin(const Exchange& exchange) {
  begun_ = true;
  if (!std::holds_alternative<AdaComm>(period_.adapted)) return;
  memory_ = exchange.strategyBlock(kMemory).values.front();  // only the first worker's block is used
  const auto& memory = detail::numbersOf<Memory>(memory_);
  detail::requireNotNegative(kMemory, memory.period, "as the period");
  detail::requireNotNegative(kMemory, memory.firstRate, "as the first learning rate");
  detail::requireCount(kMemory, memory.seen, "iterations");
  detail::requireCount(kMemory, memory.rounds, "rounds");
  detail::requireCount(kMemory, memory.iterations, "iterations of an interval");
  detail::requireCount(kMemory, memory.passed, "iterations without a merge");
}

std::int64_t PeriodState::iterations(const TrainingProgress& progress) {
  const auto* const adaComm = std::get_if<AdaComm>(&period_.adapted);
  std::int64_t iterations = period_.every;
  if (period_.inFirstPart(progress) || (begun_ && !adaComm))
    iterations = period_.at(progress);
  else if (begun_)
    iterations = adaptedIterations(*adaComm, progress);
  value_.value = static_cast<double>(iterations);
  return iterations;
}

void PeriodState::passRound(const TrainingProgress& progress) {
  if (!memory_.defined()) return;
  auto& memory = detail::numbersOf<Memory>(memory_);
  if (memory.period != 0) memory.passRound(progress);
}

std::int64_t PeriodState::adaptedIterations(const AdaComm& rule, const TrainingProgress& progress) const {
  auto& memory = detail::numbersOf<Memory>(memory_);
  const double rate = std::max(0.0, progress.learningRate);
  if (memory.period == 0) {
    memory.period = static_cast<double>(period_.every);
    memory.firstRate = rate;
  } else if (memory.passRound(progress)) {
    memory.countRound();
    if (memory.rounds >= static_cast<double>(rule.interval)) memory.adapt(rule, period_.every);
  }
  memory.seen = static_cast<double>(progress.iteration);
  const double rates = rate == memory.firstRate ? 1 : std::sqrt(memory.firstRate / rate);
  return clamped(std::ceil(memory.period * rates * (1 - kRounding)), 1);
}

}  // namespace muster
