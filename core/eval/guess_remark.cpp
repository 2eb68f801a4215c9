#include "muster/core/eval/guess_remark.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "muster/core/base/plural.h"
#include "muster/core/base/printable_text.h"

namespace muster {
namespace {

// Standard deviations of a normal distribution, beyond which is 2.5 % of it on either side.
constexpr double kDeviations = 1.959963984540054;

/// @param few  whether it is better, but may be by chance.
std::string sentence(std::int64_t examples, bool few, std::string_view than) {
  return fmt::format(
      "the {} {} predicted {} better than by {}: {}", plural(examples, "held-out example"),
      examples == 1 ? "is" : "are", few ? "hardly" : "no", than,
      few ? "that may be chance" : "the inputs may not tell it, or the training was too short");
}

std::string remarkOn(const RegressionEvaluation& scores) {
  const double r2 = scores.r2();
  const double errors = std::atanh(std::min(scores.correlation(), 1.0)) *
                        std::sqrt(std::max(static_cast<double>(scores.examples()) - 3, 0.0));
  if (r2 > 0 && errors > 1) return {};
  const auto& targets = scores.targets();
  return sentence(
      scores.examples(), r2 > 0,
      fmt::format("the mean of {} (R2 {:.4f})",
                  targets.size() == 1 ? printableText(targets.front().name) : std::string("their numbers"),
                  r2));
}

std::string remarkOn(const Evaluation& scores) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(scores.classes()));
  std::int64_t right = 0;
  for (std::int64_t actual = 0; actual < scores.classes(); ++actual) {
    right += scores.count(actual, actual);
    for (std::int64_t c = 0; c < scores.classes(); ++c)
      counts[static_cast<std::size_t>(actual)] += scores.count(actual, c);
  }
  const auto most = std::ranges::max_element(counts);
  const auto commonest = most - counts.begin();
  const std::int64_t both = scores.count(commonest, commonest);  // right by the network and by the one class
  const std::int64_t won = right - both, lost = *most - both;
  if (static_cast<double>(won - lost) > std::sqrt(static_cast<double>(won + lost))) return {};
  return sentence(
      scores.examples(), won > lost,
      fmt::format("the commonest class {} for all (accuracy {:.4f}, and {:.4f})",
                  scores.classNames().empty()
                      ? fmt::format("{}", commonest)
                      : printableText(scores.classNames()[static_cast<std::size_t>(commonest)]),
                  scores.accuracy(), static_cast<double>(*most) / static_cast<double>(scores.examples())));
}

}  // namespace

std::string guessRemark(const AnyEvaluation& evaluation) {
  switch (evaluation.task()) {
    case Task::Classification:
      return remarkOn(evaluation.classification());
    case Task::Regression:
      return remarkOn(evaluation.regression());
    case Task::Labels:
      return {};
  }
  return {};
}

std::string intervalText(const AnyEvaluation& evaluation, bool choseEpoch) {
  constexpr std::int64_t kMany = 1000;
  if (evaluation.task() != Task::Classification || evaluation.examples() >= kMany) return {};
  const auto [low, high] = shareInterval(evaluation.accuracy(), static_cast<double>(evaluation.examples()));
  return fmt::format(" (95 % interval of the accuracy: {:.2f} to {:.2f}{})", low, high,
                     choseEpoch ? "; they chose the best epoch, too, so new examples may do worse" : "");
}

std::array<double, 2> shareInterval(double share, double examples) {
  const double z = kDeviations * kDeviations / examples;
  const double centre = share + z / 2, half = std::sqrt(z * (share * (1 - share) + z / 4));
  return {(centre - half) / (1 + z), (centre + half) / (1 + z)};
}

}  // namespace muster
