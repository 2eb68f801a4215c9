#include "muster/core/comparison/detail/conclusion.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>
#include <vector>

#include "muster/core/base/plural.h"

namespace muster::detail {
namespace {

/// For example "diloco by 1.20 points (95 % interval 0.43 to 1.97, 5 seeds)"; `sign` -1 of one that is worse.
std::string differenceSentence(const ArmSummary& arm, const ComparisonMetric& metric, double sign) {
  const auto& d = arm.difference;
  const auto number = [&](double value) {
    return fmt::format("{:.{}f}", sign * value * metric.factor, metric.decimals);
  };
  const double low = sign > 0 ? d.low() : d.high(), high = sign > 0 ? d.high() : d.low();
  return fmt::format("{} by {}{} (95 % interval {} to {}, {})", arm.name, number(d.mean), metric.points,
                     number(low), number(high), plural(d.count, "seed"));
}

struct Verdicts {
  std::vector<const ArmSummary*> better, worse, diverged;
  std::size_t same = 0;
  std::size_t few = 0;      // fewer than two pairs of finished runs, so no interval
  std::size_t uniform = 0;  // the same difference with each seed, so no spread to judge it by

  std::size_t unknown() const { return few + uniform; }
};

Verdicts verdictsOf(const ComparisonSummary& s) {
  Verdicts v;
  for (const auto& arm : s.arms) {
    const auto& d = arm.difference;
    if (arm.diverged())
      v.diverged.push_back(&arm);
    else if (arm.name == s.baseline)
      continue;
    else if (d.count < 2)
      ++v.few;
    else if (d.differsFromZero())
      (d.mean > 0 ? v.better : v.worse).push_back(&arm);
    else
      ++(d.hasSpread() ? v.same : v.uniform);
  }
  return v;
}

/// For example "; 2 are worse"; "" for none.
std::string rest(std::size_t count, std::string_view what) {
  return count == 0 ? std::string() : fmt::format("; {} {} {}", count, count == 1 ? "is" : "are", what);
}

std::string open(std::size_t arms) {
  return fmt::format("of {} it is not known whether {}", plural(arms, "arm"),
                     arms == 1 ? "it differs" : "they differ");
}

/// Why nothing is known of some arms.
std::string reasonsOf(const Verdicts& v) {
  std::string reasons = v.few > 0 ? "fewer than two seeds have a finished run of both" : "";
  if (v.uniform > 0)
    reasons += fmt::format("{}the difference is the same with each seed, and its spread is not known",
                           reasons.empty() ? "" : ", or ");
  return reasons;
}

/// A warning if no arm has learnt what one answer for all examples does not say; "" if one has or was not
/// trained yet, or none came to an end.
std::string guessSentence(const ComparisonSummary& s) {
  const ArmSummary* one = nullptr;
  for (const auto& arm : s.arms) {
    if (arm.runs == 0 || (arm.trained() && !arm.guessed())) return {};
    if (one == nullptr && arm.guessed()) one = &arm;
  }
  if (one == nullptr) return {};
  return fmt::format("No arm is clearly better than one answer for all examples, as in a run of {}: {}. ",
                     one->name, one->guesses.first);
}

std::string divergedClause(const Verdicts& v) {
  if (v.diverged.empty()) return "";
  const auto which = v.diverged.size() == 1 ? v.diverged.front()->name : plural(v.diverged.size(), "arm");
  return fmt::format("; {} diverged in each run", which);
}

/// The sentence without its end, on several seeds.
std::string verdict(const Verdicts& v, const ComparisonSummary& s) {
  const auto others = v.same + v.unknown() == 0 ? std::string() : "; " + open(v.same + v.unknown());
  if (!v.better.empty())
    return fmt::format("Better than {}: {}{}{}{}", s.baseline,
                       differenceSentence(*v.better.front(), s.metric, 1),
                       rest(v.better.size() - 1, "better by less"), rest(v.worse.size(), "worse"), others);
  if (!v.worse.empty())
    return fmt::format("No arm is better than {}. Worse: {}{}{}", s.baseline,
                       differenceSentence(*v.worse.back(), s.metric, -1),
                       rest(v.worse.size() - 1, "worse by less"), others);
  if (v.same > 0)
    return fmt::format(
        "No arm differs from {} by more than chance would explain (95 % intervals of Student's t){}",
        s.baseline, v.unknown() == 0 ? std::string() : "; " + open(v.unknown()));
  if (v.unknown() > 0)
    return fmt::format("Compared with {}, {}: {}", s.baseline, open(v.unknown()), reasonsOf(v));
  return fmt::format("There is no {} to compare with that of {}", s.metric.name, s.baseline);
}

}  // namespace

std::string conclusionOf(const Comparison& c, const ComparisonSummary& s) {
  const auto v = verdictsOf(s);
  if (v.diverged.size() == s.arms.size()) return "Every arm diverged in each run.";
  if (c.grid.seeds.size() < 2)
    return fmt::format("{}One seed: whether arms differ by more than chance is not known{}{}.",
                       guessSentence(s), divergedClause(v),
                       c.advice.seeds.empty() ? "" : "; " + c.advice.seeds);
  return fmt::format("{}{}{}.", guessSentence(s), verdict(v, s), divergedClause(v));
}

}  // namespace muster::detail
