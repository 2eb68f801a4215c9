#include "examples/muster/guess_remark.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "muster/core/base/plural.h"
#include "muster/core/base/printable_text.h"

namespace program {

using namespace muster;

std::string guessRemark(const AnyEvaluation& evaluation, const InputDescription& description,
                        std::span<const std::string> classes) {
  constexpr std::string_view kWhy = "the inputs may not tell it, or the training was too short";
  const auto examples = plural(evaluation.examples(), "held-out example");
  if (evaluation.task() == Task::Regression) {
    const double r2 = evaluation.regression().r2();
    if (!(r2 <= 0)) return {};
    return fmt::format("the {} {} predicted no better than by the mean of {} (R2 {:.4f}): {}", examples,
                       evaluation.examples() == 1 ? "is" : "are",
                       description.targets.size() == 1 ? printableText(description.targets.front().name)
                                                       : std::string("their numbers"),
                       r2, kWhy);
  }
  if (evaluation.task() != Task::Classification) return {};
  const auto& scores = evaluation.classification();
  const auto width = static_cast<std::size_t>(scores.classes());
  std::vector<std::int64_t> counts(width);
  for (std::size_t i = 0; i < scores.confusionMatrix().size(); ++i)
    counts[i / width] += scores.confusionMatrix()[i];
  const auto commonest = static_cast<std::size_t>(std::ranges::max_element(counts) - counts.begin());
  const double share = static_cast<double>(counts[commonest]) / static_cast<double>(scores.examples());
  if (scores.accuracy() > share) return {};
  return fmt::format(
      "the {} {} predicted no better than by the commonest class {} for all (accuracy {:.4f}, "
      "and {:.4f}): {}",
      examples, scores.examples() == 1 ? "is" : "are",
      commonest < classes.size() ? printableText(classes[commonest]) : fmt::format("{}", commonest),
      scores.accuracy(), share, kWhy);
}

}  // namespace program
