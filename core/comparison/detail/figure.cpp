#include "muster/core/comparison/detail/figure.h"

#include <fmt/format.h>

#include <array>

#include "muster/core/comparison/detail/axis.h"

namespace muster::detail {
namespace {

/// The page's colours (charts.js): Okabe and Ito's first, any two distinguishable to the colour-blind.
constexpr std::array kColours{"#0072b2", "#d55e00", "#007f5f", "#b3478f",
                              "#140385", "#900aec", "#7a3b00", "#45004e"};
constexpr std::array kDashes{"none", "7 3", "2 2", "9 3 2 3", "14 3", "5 2 1 2 1 2", "1 3", "12 2 4 2"};

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string svgOpening(std::string_view title, double height) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"sans-serif\" font-size=\"12\" fill=\"currentColor\" role=\"img\">\n<title>{2}</title>\n",
      kFigureWidth, height, escaped(title));
}

std::string svgText(double x, double y, const char* anchor, std::string_view words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     escaped(words));
}

std::string svgLine(double x1, double y1, double x2, double y2, std::string_view style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2,
                     style);
}

std::string svgTick(double x, double bottom, double value) {
  return svgLine(x, kFigureTop, x, bottom, kGridLine) + svgText(x, bottom + 16, "middle", tickText(value));
}

std::string colourOf(std::size_t style) {
  return kColours[style % kColours.size()];
}

std::string strokeOf(std::size_t style) {
  const std::size_t colours = kColours.size(), dash = style / 2 + style / colours;
  // Each colour has each of the dashes once among the first 64; later ones are longer and longer.
  const std::string dashes = style < colours * kDashes.size() ? kDashes[dash % kDashes.size()]
                                                              : fmt::format("{} 3 2 3", 8 + style / colours);
  return fmt::format("stroke=\"{}\" stroke-dasharray=\"{}\"", colourOf(style), dashes);
}

std::string figureNumber(double value) {
  return fmt::format("{:.10g}", value);
}

}  // namespace muster::detail
