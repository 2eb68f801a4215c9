#pragma once

#include <cstdint>
#include <span>

namespace muster {

/// A point of a drawing: x to the right, y down.
struct StrokePoint {
  std::int32_t x = 0;
  std::int32_t y = 0;
};

/// One movement of the pen: a quadratic B-spline through control points. It starts at the first and ends at
/// the last point; a point given twice makes a corner; a closed stroke returns to its start.
struct Stroke {
  std::span<const StrokePoint> points;
  bool closed = false;
  /// Drawn in some images only: the foot of a 1, the bar of a 7.
  bool optional = false;
};

/// The strokes of digit 0 .. 9 in a field of 60 by 100 around (0, 0).
std::span<const Stroke> strokesOf(int digit);

}  // namespace muster
