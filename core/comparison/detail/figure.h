#pragma once

#include <string>
#include <string_view>

#include "muster/core/base/text_table.h"

namespace muster::detail {

/// A figure, and the numbers in it.
struct Plot {
  std::string name;  ///< of its files
  std::string title;
  std::string svg;
  Cells values;
};

inline constexpr double kFigureWidth = 760, kFigureRight = 16, kFigureTop = 12;
inline constexpr double kFigureRow = 20;  ///< of a legend or of an arm
inline constexpr std::string_view kGridLine = "stroke=\"#888\" stroke-opacity=\"0.5\" stroke-width=\"0.5\"";

/// A text in HTML or SVG, also as the value of an attribute.
std::string escaped(std::string_view text);

/// The beginning of an SVG of kFigureWidth; it ends with `</svg>`.
std::string svgOpening(std::string_view title, double height);
/// @param anchor  start, middle or end.
std::string svgText(double x, double y, const char* anchor, std::string_view words);
/// @param style  attributes.
std::string svgLine(double x1, double y1, double x2, double y2, std::string_view style);
/// A vertical grid line from kFigureTop to `bottom`, and its number below.
std::string svgTick(double x, double bottom, double value);

/// Colour of an arm's curve.
std::string colourOf(std::size_t style);
/// Colour and dashes of an arm's curve; those of any two arms differ.
std::string strokeOf(std::size_t style);

/// A number of a figure in a file.
std::string figureNumber(double value);

}  // namespace muster::detail
