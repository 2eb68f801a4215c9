#include "examples/support/svg_plot.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <ranges>

#include "examples/support/number_text.h"

namespace example {
namespace {

// In the units of the drawing, which the page scales as a whole.
constexpr double kWidth = 420, kHeight = 280;
constexpr double kLeft = 58, kRight = 14, kTop = 12, kBottom = 44;
constexpr double kInnerWidth = kWidth - kLeft - kRight, kInnerHeight = kHeight - kTop - kBottom;

constexpr std::size_t kMostDots = 40;  // of a line whose points are drawn one by one, too

struct Drawing {
  const Plot& plot;
  PlotScale x, y;

  double px(double value) const { return kLeft + kInnerWidth * x.at(value); }
  double py(double value) const { return kTop + kInnerHeight * (1 - y.at(value)); }
  std::string place(double atX, double atY) const { return fmt::format("{:.1f},{:.1f}", px(atX), py(atY)); }
};

Drawing drawingOf(const Plot& plot) {
  std::vector<double> x, y;
  for (const auto& line : plot.lines)
    for (const auto& point : line.points) {
      x.push_back(point.x);
      y.insert(y.end(), {point.y, point.low, point.high});
    }
  if (plot.mark && !y.empty()) y.push_back(*plot.mark);
  return {plot, PlotScale(plot.x.scale, x), PlotScale(plot.y.scale, y)};
}

void appendAxes(std::string& svg, const Drawing& drawing) {
  auto out = std::back_inserter(svg);
  const double right = kWidth - kRight, bottom = kHeight - kBottom;
  for (const auto& tick : drawing.x.ticks()) {
    const double at = drawing.px(tick.value);
    fmt::format_to(out, R"(<line class="grid" x1="{0:.1f}" y1="{1}" x2="{0:.1f}" y2="{2}"/>)", at, kTop,
                   bottom);
    fmt::format_to(out, R"(<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>)", at, bottom + 15,
                   escapeMarkup(tick.label));
  }
  for (const auto& tick : drawing.y.ticks()) {
    const double at = drawing.py(tick.value);
    fmt::format_to(out, R"(<line class="grid" x1="{1}" y1="{0:.1f}" x2="{2}" y2="{0:.1f}"/>)", at, kLeft,
                   right);
    fmt::format_to(out, R"(<text x="{}" y="{:.1f}" text-anchor="end">{}</text>)", kLeft - 6, at + 4,
                   escapeMarkup(tick.label));
  }
  fmt::format_to(out, R"(<path class="frame" d="M{0},{1}V{2}H{3}"/>)", kLeft, kTop, bottom, right);
  fmt::format_to(out, R"(<text class="label" x="{}" y="{}" text-anchor="middle">{}</text>)",
                 kLeft + kInnerWidth / 2, kHeight - 8, escapeMarkup(drawing.plot.x.label));
  fmt::format_to(
      out,
      R"svg(<text class="label" transform="translate(13,{}) rotate(-90)" text-anchor="middle">{}</text>)svg",
      kTop + kInnerHeight / 2, escapeMarkup(drawing.plot.y.label));
}

/// ` stroke-dasharray="..."`, or nothing.
std::string dashesOf(const LineStyle& style) {
  return style.dashes.empty() ? "" : fmt::format(R"( stroke-dasharray="{}")", style.dashes);
}

void appendLine(std::string& svg, const Drawing& drawing, const PlotLine& line) {
  std::vector<const PlotPoint*> points;
  for (const auto& point : line.points)
    if (drawing.x.holds(point.x) && drawing.y.holds(point.y)) points.push_back(&point);
  if (points.empty()) return;
  std::vector<std::string> middle, around;  // the band's upper edge, and its lower one back
  for (const auto* point : points) {
    middle.push_back(drawing.place(point->x, point->y));
    around.push_back(drawing.place(point->x, point->high));
  }
  for (const auto* point : std::views::reverse(points)) around.push_back(drawing.place(point->x, point->low));
  auto out = std::back_inserter(svg);
  const auto colour = escapeMarkup(line.style.colour);
  fmt::format_to(out, R"(<g><title>{}</title>)", escapeMarkup(line.name));
  fmt::format_to(out, R"(<polygon points="{}" fill="{}" fill-opacity="0.15"/>)", fmt::join(around, " "),
                 colour);
  fmt::format_to(out, R"(<polyline points="{}" fill="none" stroke="{}" stroke-width="2"{}/>)",
                 fmt::join(middle, " "), colour, dashesOf(line.style));
  if (points.size() <= kMostDots)
    for (const auto* point : points)
      fmt::format_to(out, R"(<circle cx="{:.1f}" cy="{:.1f}" r="3" fill="{}"/>)", drawing.px(point->x),
                     drawing.py(point->y), colour);
  svg += "</g>";
}

/// Axes, mark and lines.
std::string contentsOf(const Plot& plot) {
  const Drawing drawing = drawingOf(plot);
  std::string svg;
  appendAxes(svg, drawing);
  if (plot.mark) {
    const double at = drawing.py(*plot.mark);
    svg += fmt::format(R"(<line class="mark" x1="{1}" y1="{0:.1f}" x2="{2}" y2="{0:.1f}"/>)", at, kLeft,
                       kWidth - kRight);
    const auto value =
        plot.y.scale == ScaleKind::Accuracy ? percentText(*plot.mark) : shortNumber(*plot.mark);
    svg += fmt::format(R"(<text x="{}" y="{:.1f}" text-anchor="end">{}</text>)", kWidth - kRight - 2, at - 4,
                       escapeMarkup(value));
  }
  for (const auto& line : plot.lines) appendLine(svg, drawing, line);
  return svg;
}

}  // namespace

std::string escapeMarkup(std::string_view text) {
  std::string escaped;
  for (const char c : text) switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  return escaped;
}

std::string svgDocument(const Plot& plot) {
  constexpr double kTitle = 28, kLegendLine = 18;
  const double height = kTitle + kHeight + kLegendLine * static_cast<double>(plot.lines.size()) + 8;
  std::string svg = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{2}" height="{3}" )"
      R"(font-family="sans-serif" font-size="11" fill="#1f2328"><title>{4}</title>)"
      "<style>.grid{{stroke:#e3e6e9}}.frame{{fill:none;stroke:#57606a}}"
      ".mark{{stroke:#57606a;stroke-dasharray:2 3}}</style>"
      R"(<rect width="{0}" height="{1}" fill="#ffffff"/>)"
      R"svg(<text x="{5}" y="19" font-size="13" font-weight="bold">{4}</text><g transform="translate(0,{6})">{7}</g>)svg",
      kWidth, height, 2 * kWidth, 2 * height, escapeMarkup(plot.title), kLeft, kTitle, contentsOf(plot));
  double at = kTitle + kHeight + kLegendLine / 2;
  for (const auto& line : plot.lines) {
    svg += fmt::format(
        R"(<line x1="{0}" y1="{1}" x2="{2}" y2="{1}" stroke="{3}" stroke-width="2"{4}/><text x="{5}" y="{6}">{7}</text>)",
        kLeft, at, kLeft + 28, escapeMarkup(line.style.colour), dashesOf(line.style), kLeft + 36, at + 4,
        escapeMarkup(line.name));
    at += kLegendLine;
  }
  return svg + "</svg>\n";
}

}  // namespace example
