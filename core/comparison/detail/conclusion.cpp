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

}  // namespace

std::string conclusionOf(const Comparison& c, const ComparisonSummary& s) {
  std::vector<const ArmSummary*> better, worse;
  std::size_t same = 0, unknown = 0;  // unknown: fewer than two pairs of finished runs, so no interval
  for (const auto& arm : s.arms) {
    if (arm.name == s.baseline) continue;
    if (arm.difference.count < 2)
      ++unknown;
    else if (!arm.difference.differsFromZero())
      ++same;
    else
      (arm.difference.mean > 0 ? better : worse).push_back(&arm);
  }
  const auto rest = [](std::size_t count, std::string_view what) {
    return count == 0 ? std::string() : fmt::format("; {} {} {}", count, count == 1 ? "is" : "are", what);
  };
  if (c.grid.seeds.size() < 2)
    return fmt::format("One seed: whether arms differ by more than chance is not known{}.",
                       c.advice.seeds.empty() ? "" : "; " + c.advice.seeds);
  const auto open = [](std::size_t arms) {
    return fmt::format("of {} it is not known whether {}", plural(arms, "arm"),
                       arms == 1 ? "it differs" : "they differ");
  };
  if (better.empty() && worse.empty() && same == 0)
    return fmt::format("Compared with {}, {}: fewer than two seeds have a finished run of both.", s.baseline,
                       open(unknown));
  if (better.empty() && worse.empty())
    return fmt::format(
        "No arm differs from {} by more than chance would explain (95 % intervals of Student's t){}.",
        s.baseline, unknown == 0 ? std::string() : "; " + open(unknown));
  const auto others = same + unknown == 0 ? std::string() : "; " + open(same + unknown);
  if (!better.empty())
    return fmt::format("Better than {}: {}{}{}{}.", s.baseline,
                       differenceSentence(*better.front(), s.metric, 1),
                       rest(better.size() - 1, "better by less"), rest(worse.size(), "worse"), others);
  return fmt::format("No arm is better than {}. Worse: {}{}{}.", s.baseline,
                     differenceSentence(*worse.back(), s.metric, -1), rest(worse.size() - 1, "worse by less"),
                     others);
}

}  // namespace muster::detail
