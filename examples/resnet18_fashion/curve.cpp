#include "examples/resnet18_fashion/curve.h"

#include <fmt/format.h>

#include "examples/support/number_text.h"
#include "examples/support/svg_plot.h"
#include "examples/support/text_table.h"

namespace example {

std::string curveTable(const std::vector<EpochResult>& epochs) {
  Cells rows{{"epoch", "training loss", "test accuracy, %", "seconds"}};
  for (const auto& epoch : epochs)
    rows.push_back({fmt::format("{}", epoch.epoch), fmt::format("{:.4f}", epoch.loss),
                    fmt::format("{:.2f}", epoch.accuracy * 100), secondsDigits(epoch.seconds)});
  return textTable(rows);
}

std::string curvePlot(const std::vector<EpochResult>& epochs, const std::string& title,
                      const std::string& name) {
  PlotLine line{name, {"#1a73e8", ""}, {}};
  for (const auto& epoch : epochs)
    line.points.push_back({static_cast<double>(epoch.epoch), epoch.accuracy, epoch.accuracy, epoch.accuracy});
  return svgDocument({.title = title,
                      .x = {"epoch", ScaleKind::Linear},
                      .y = {"test accuracy", ScaleKind::Linear},
                      .lines = {line},
                      .mark = {}});
}

}  // namespace example
