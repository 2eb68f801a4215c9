#include "muster/core/eval/guess_remark.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
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
      few ? "that may be chance" : "the inputs may not determine it, or the training was too short");
}

std::string remarkOn(const RegressionEvaluation& scores) {
  const double r2 = scores.r2();
  const double errors = std::atanh(std::min(scores.correlation(), 1.0)) *
                        std::sqrt(std::max(static_cast<double>(scores.examples()) - 3, 0.0));
  if (r2 > 0 && errors > 1) return {};
  const auto& targets = scores.targets();
  const auto target =
      targets.size() == 1 ? printableText(targets.front().name) : std::string("their numbers");
  if (std::isnan(r2))
    return fmt::format(
        "{} no different numbers in float32, so {} not show how well {} predicted (R2 undefined)",
        scores.examples() == 1 ? "one held-out example has"
                               : fmt::format("the {} held-out examples have", scores.examples()),
        scores.examples() == 1 ? "it does" : "they do", targets.size() == 1 ? target + " is" : "they are");
  return sentence(scores.examples(), r2 > 0, fmt::format("the mean of {} (R2 {:.4f})", target, r2));
}

/// A classification and the best answer that is the same for all examples, each weighted by its class.
struct GuessedClass {
  std::int64_t answer = 0;
  double all = 0;            // weight of the examples
  double right = 0;          // of those that are predicted rightly
  double guessed = 0;        // of those of the one class
  double won = 0, lost = 0;  // right by the network alone, and by the one class alone
  double squares = 0;        // of these examples' weights
};

GuessedClass guessOf(const Evaluation& scores, std::span<const float> weights) {
  const auto weightOf = [&](std::int64_t c) {
    return weights.empty() ? 1.0 : double{weights[static_cast<std::size_t>(c)]};
  };
  std::vector<std::int64_t> counts(static_cast<std::size_t>(scores.classes()));
  GuessedClass guess;
  for (std::int64_t actual = 0; actual < scores.classes(); ++actual) {
    auto& count = counts[static_cast<std::size_t>(actual)];
    for (std::int64_t c = 0; c < scores.classes(); ++c) count += scores.count(actual, c);
    const double weight = weightOf(actual) * static_cast<double>(count);
    guess.all += weight;
    guess.right += weightOf(actual) * static_cast<double>(scores.count(actual, actual));
    if (weight <= guess.guessed) continue;
    guess.guessed = weight;
    guess.answer = actual;
  }
  for (std::int64_t c = 0; c < scores.classes(); ++c) {
    const std::int64_t right = scores.count(c, c);
    const bool guessed = c == guess.answer;
    const auto differ = static_cast<double>(guessed ? counts[static_cast<std::size_t>(c)] - right : right);
    (guessed ? guess.lost : guess.won) += weightOf(c) * differ;
    guess.squares += weightOf(c) * weightOf(c) * differ;
  }
  return guess;
}

std::string remarkOn(const Evaluation& scores, std::span<const float> weights) {
  if (std::ssize(weights) != scores.classes()) weights = {};
  const auto guess = guessOf(scores, weights);
  if (guess.all == 0 || guess.won - guess.lost > std::sqrt(guess.squares)) return {};
  const auto& names = scores.classNames();
  const auto answer = names.empty() ? fmt::format("{}", guess.answer)
                                    : printableText(names[static_cast<std::size_t>(guess.answer)]);
  return sentence(
      scores.examples(), guess.won > guess.lost,
      fmt::format("the {}class {} for all (accuracy{} {:.4f}, and {:.4f})",
                  weights.empty() ? "commonest " : "", answer, weights.empty() ? "" : ", by class weights,",
                  guess.right / guess.all, guess.guessed / guess.all));
}

}  // namespace

std::string guessRemark(const AnyEvaluation& evaluation, std::span<const float> classWeights) {
  switch (evaluation.task()) {
    case Task::Classification:
      return remarkOn(evaluation.classification(), classWeights);
    case Task::Regression:
      return remarkOn(evaluation.regression());
    case Task::Labels:
      return {};
  }
  return {};
}

std::string intervalText(const AnyEvaluation& evaluation, bool choseEpoch) {
  constexpr std::int64_t kMany = 1000;
  const std::string_view chose =
      choseEpoch ? "they chose the best epoch, too, so new examples may do worse" : "";
  if (evaluation.examples() == 0 || evaluation.examples() >= kMany) return {};
  if (evaluation.task() != Task::Classification) return choseEpoch ? fmt::format(" ({})", chose) : "";
  const auto [low, high] = shareInterval(evaluation.accuracy(), static_cast<double>(evaluation.examples()));
  return fmt::format(" (95 % interval of the accuracy: {:.2f} to {:.2f}{}{})", low, high,
                     choseEpoch ? "; " : "", chose);
}

std::array<double, 2> shareInterval(double share, double examples) {
  const double z = kDeviations * kDeviations / examples;
  const double centre = share + z / 2, half = std::sqrt(z * (share * (1 - share) + z / 4));
  return {(centre - half) / (1 + z), (centre + half) / (1 + z)};
}

}  // namespace muster
