#include "examples/muster/score_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "muster/core/base/plural.h"
#include "muster/core/base/printable_text.h"

namespace program {

using namespace muster;

std::string scoreLine(const AnyEvaluation& evaluation, const InputDescription& description) {
  if (evaluation.task() != Task::Regression || description.targets.size() != 1) return evaluation.line();
  const double scale = description.targets.front().scale;
  const auto& numbers = evaluation.regression();
  return fmt::format("R2 {:.4f}, RMSE {:.4g}, MAE {:.4g}", numbers.r2(),
                     scale * numbers.rootMeanSquaredError(), scale * numbers.meanAbsoluteError());
}

std::string scoreTable(const AnyEvaluation& evaluation, const InputDescription& description) {
  if (evaluation.task() != Task::Regression || description.targets.empty()) return evaluation.summary();
  const auto& numbers = evaluation.regression();
  std::string text =
      fmt::format("{}, errors in the column's own units\n\n{:>12} {:>12} {:>12} {:>10} {:>12}\n",
                  plural(numbers.examples(), "example"), "MSE", "RMSE", "MAE", "R2", "correlation");
  for (std::int64_t c = 0; c < numbers.columns(); ++c) {
    const auto& target = description.targets.at(static_cast<std::size_t>(c));
    text += fmt::format("{:>12.6g} {:>12.6g} {:>12.6g} {:>10.4f} {:>12.4f}  {}\n",
                        target.scale * target.scale * numbers.meanSquaredError(c),
                        target.scale * numbers.rootMeanSquaredError(c),
                        target.scale * numbers.meanAbsoluteError(c), numbers.r2(c), numbers.correlation(c),
                        printableText(target.name));
  }
  return text;
}

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

std::string columnsLine(const InputDescription& description) {
  if (description.columns.empty()) return {};
  std::vector<std::string> read, omitted;
  for (const auto& column : description.columns)
    read.push_back(column.kind == ColumnKind::Words
                       ? fmt::format("{} ({})", column.name, plural(column.words.size(), "word"))
                   : column.kind == ColumnKind::Date ? column.name + " (date)"
                                                     : column.name);
  for (const auto& [name, reason] : description.omitted)
    omitted.push_back(fmt::format("{} ({})", name, reason));
  return printableText(fmt::format("columns: {}{}{}", fmt::join(read, ", "),
                                   omitted.empty() ? "" : "; left out: ", fmt::join(omitted, ", ")));
}

}  // namespace program
