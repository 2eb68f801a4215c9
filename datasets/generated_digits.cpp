#include "muster/datasets/generated_digits.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/random.h"
#include "muster/datasets/digit_strokes.h"
#include "muster/datasets/image_set.h"
#include "muster/datasets/mnist.h"

namespace muster {
namespace {

constexpr int kPixels = kDigitSide * kDigitSide;
constexpr std::int32_t kPixelUnits = 64;     // units of the drawing a pixel
constexpr std::int64_t kFixedOne = 1 << 16;  // 1 in the factors of the affine map

/// The random numbers of one image, in order.
class Lots {
 public:
  Lots(const RandomStream& stream, std::int64_t image)
      : stream_(stream), next_(static_cast<std::uint64_t>(image) * kPerImage) {}

  std::uint32_t word() {
    if (used_ == words_.size()) {
      words_ = stream_.words(next_++);
      used_ = 0;
    }
    return words_[used_++];
  }
  /// A uniform number in low .. high.
  std::int32_t between(std::int32_t low, std::int32_t high) {
    const auto span = static_cast<std::uint64_t>(high - low + 1);
    return low + static_cast<std::int32_t>((word() * span) >> 32);
  }
  /// A number in -most .. most; small values are more likely.
  std::int32_t around(std::int32_t most) { return (between(-most, most) + between(-most, most)) / 2; }

 private:
  static constexpr std::uint64_t kPerImage = 256;  // more random numbers than an image needs
  const RandomStream& stream_;
  std::uint64_t next_;
  std::array<std::uint32_t, 4> words_{};
  std::size_t used_ = words_.size();
};

/// Maps the strokes' field (60 by 100) to units of the drawing; factors are 16-bit fractions.
struct Affine {
  std::int64_t xx, xy, yx, yy;
  std::int32_t dx, dy;

  StrokePoint operator()(StrokePoint p) const {
    return {static_cast<std::int32_t>((xx * p.x + xy * p.y) / kFixedOne) + dx,
            static_cast<std::int32_t>((yx * p.x + yy * p.y) / kFixedOne) + dy};
  }
};

/// Random size, slant, rotation and position. The rotation is given by t = tan(angle / 2), whose sine and
/// cosine are rational, so no library's sine is needed.
Affine drawAffine(Lots& lots) {
  const std::int64_t size = kPixelUnits * 20 * kFixedOne / 100;  // a full-size digit is 20 pixels high
  const std::int64_t width = size * lots.between(70, 110) / 100;
  const std::int64_t height = size * lots.between(70, 110) / 100;
  const std::int64_t slant = lots.between(-30, 30);  // in hundredths of the height
  const std::int64_t t = lots.between(-170, 170);    // in thousandths: up to 19 degrees
  const std::int64_t scale = 1000000 + t * t;
  const std::int64_t cosine = (1000000 - t * t) * kFixedOne / scale;
  const std::int64_t sine = 2000 * t * kFixedOne / scale;
  const std::int64_t shear = -height * slant / 100;
  const std::int32_t centre = kDigitSide * kPixelUnits / 2;
  return {.xx = cosine * width / kFixedOne,
          .xy = (cosine * shear - sine * height) / kFixedOne,
          .yx = sine * width / kFixedOne,
          .yy = (sine * shear + cosine * height) / kFixedOne,
          .dx = centre + lots.around(4 * kPixelUnits),
          .dy = centre + lots.around(4 * kPixelUnits)};
}

/// Each pixel's squared distance to the nearest point of the strokes.
class Canvas {
 public:
  explicit Canvas(std::int32_t reach) : reach_(reach) { nearest_.fill(reach * reach); }

  void touch(StrokePoint p) {
    const auto pixels = [&](std::int32_t at) {
      return std::pair(std::max((at - reach_) / kPixelUnits, 0),
                       std::min((at + reach_) / kPixelUnits, kDigitSide - 1));
    };
    const auto [left, right] = pixels(p.x);
    const auto [top, bottom] = pixels(p.y);
    for (int row = top; row <= bottom; ++row) {
      const std::int32_t y = row * kPixelUnits + kPixelUnits / 2 - p.y;
      for (int column = left; column <= right; ++column) {
        const std::int32_t x = column * kPixelUnits + kPixelUnits / 2 - p.x;
        auto& nearest = nearest_[static_cast<std::size_t>(row * kDigitSide + column)];
        nearest = std::min(nearest, x * x + y * y);
      }
    }
  }

  /// One segment of a spline, from a to c, with control point b.
  void curve(StrokePoint a, StrokePoint b, StrokePoint c) {
    constexpr std::int32_t kSteps = 32;
    for (std::int32_t i = 0; i <= kSteps; ++i) {
      const std::int32_t j = kSteps - i;
      const auto blend = [&](std::int32_t p, std::int32_t q, std::int32_t r) {
        return (j * j * p + 2 * i * j * q + i * i * r) / (kSteps * kSteps);
      };
      touch({blend(a.x, b.x, c.x), blend(a.y, b.y, c.y)});
    }
  }

  std::int32_t squaredDistance(std::size_t pixel) const { return nearest_[pixel]; }

 private:
  std::int32_t reach_;  // no ink farther than this from the pen
  std::array<std::int32_t, kPixels> nearest_;
};

StrokePoint middle(StrokePoint a, StrokePoint b) {
  return {(a.x + b.x) / 2, (a.y + b.y) / 2};
}

/// A quadratic B-spline is a chain of curves between the midpoints of its control points.
void drawStroke(Canvas& canvas, std::span<const StrokePoint> points, bool closed) {
  const std::size_t n = points.size();
  if (closed) {
    for (std::size_t i = 0; i < n; ++i) {
      const auto before = points[(i + n - 1) % n];
      const auto after = points[(i + 1) % n];
      canvas.curve(middle(before, points[i]), points[i], middle(points[i], after));
    }
    return;
  }
  StrokePoint from = points[0];
  for (std::size_t i = 1; i + 1 < n; ++i) {
    const auto to = i + 2 == n ? points[n - 1] : middle(points[i], points[i + 1]);
    canvas.curve(from, points[i], to);
    from = to;
  }
  if (n == 2) canvas.curve(points[0], middle(points[0], points[1]), points[1]);
}

void drawStrokes(Canvas& canvas, int digit, const Affine& affine, Lots& lots) {
  constexpr std::int32_t kWobble = 12;  // shift of a control point, in hundredths of the height
  std::array<StrokePoint, 16> moved;
  for (const auto& stroke : strokesOf(digit)) {
    const bool wanted = !stroke.optional || lots.between(0, 1) == 1;
    StrokePoint last{};
    StrokePoint shift{};
    for (std::size_t i = 0; i < stroke.points.size(); ++i) {
      const auto point = stroke.points[i];
      // Both points of a corner move together; otherwise the corner becomes a loop.
      const bool corner = i > 0 && point.x == last.x && point.y == last.y;
      if (!corner) shift = {lots.around(kWobble), lots.around(kWobble)};
      moved[i] = affine({point.x + shift.x, point.y + shift.y});
      last = point;
    }
    if (wanted) drawStroke(canvas, std::span(moved).first(stroke.points.size()), stroke.closed);
  }
}

/// Inks the pixels near the strokes, with soft edges, and adds noise to the whole image.
void paint(const Canvas& canvas, std::int32_t inner, std::int32_t outer, Lots& lots,
           std::span<std::uint8_t> pixels) {
  const std::int32_t brightness = lots.between(150, 255);
  const std::int32_t noise = lots.between(0, 60);
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < pixels.size(); ++i, word >>= 8) {
    if (i % 4 == 0) word = lots.word();
    // Depth is linear in the squared distance: nearly linear in the distance, without a square root.
    const std::int32_t depth = std::clamp(outer - canvas.squaredDistance(i), 0, outer - inner);
    const std::int32_t grain = (static_cast<std::int32_t>(word & 0xFF) - 128) * noise / 128;
    pixels[i] = static_cast<std::uint8_t>(std::clamp(depth * brightness / (outer - inner) + grain, 0, 255));
  }
}

std::shared_ptr<const ImageSet> drawAll(std::int64_t examples, std::uint64_t seed, bool train) {
  require(examples >= 1, "generated digits: at least 1 example is needed, got {}", examples);
  const auto count = static_cast<std::size_t>(examples);
  std::vector<std::uint8_t> pixels(count * kPixels);
  std::vector<std::uint8_t> labels(count);
  for (std::size_t i = 0; i < count; ++i)
    labels[i] = static_cast<std::uint8_t>(drawDigit(seed, train, static_cast<std::int64_t>(i),
                                                    std::span(pixels).subspan(i * kPixels, kPixels)));
  return std::make_shared<const ImageSet>(std::move(pixels), Shape{1, kDigitSide, kDigitSide},
                                          std::move(labels), 10, "generated digits",
                                          std::vector<std::string>(MnistDataSetIterator::kClassNames.begin(),
                                                                   MnistDataSetIterator::kClassNames.end()));
}

}  // namespace

int drawDigit(std::uint64_t seed, bool train, std::int64_t index, std::span<std::uint8_t> pixels) {
  require(pixels.size() == kPixels, "generated digits: an image has {} pixels, not {}", kPixels,
          pixels.size());
  const RandomStream stream(seed, train ? "generated digits, training" : "generated digits, test");
  Lots lots(stream, index);
  const int digit = lots.between(0, 9);
  const Affine affine = drawAffine(lots);
  const std::int32_t radius = kPixelUnits * lots.between(80, 170) / 100;
  constexpr std::int32_t kRim = kPixelUnits * 7 / 10;
  Canvas canvas(radius + kRim);
  drawStrokes(canvas, digit, affine, lots);
  const std::int32_t inner = radius - kRim;
  paint(canvas, inner * inner, (radius + kRim) * (radius + kRim), lots, pixels);
  return digit;
}

GeneratedDigitsIterator::GeneratedDigitsIterator(std::int64_t batch, std::int64_t examples,
                                                 std::uint64_t seed, bool train)
    : ImageSetIterator(drawAll(examples, seed, train), batch, train ? std::optional(seed) : std::nullopt) {}

}  // namespace muster
