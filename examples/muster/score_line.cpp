#include "examples/muster/score_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
