#include "examples/muster/score_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

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

std::string columnsLine(const InputDescription& description) {
  if (description.columns.empty()) return {};
  std::vector<std::string> read, omitted;
  for (const auto& column : description.columns) read.push_back(column.name);
  for (const auto& [name, reason] : description.omitted)
    omitted.push_back(fmt::format("{} ({})", name, reason));
  return printableText(fmt::format("columns: {}{}{}", fmt::join(read, ", "),
                                   omitted.empty() ? "" : "; left out: ", fmt::join(omitted, ", ")));
}

}  // namespace program
