#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace example {

using Colour = std::array<std::uint8_t, 3>;  // red, green, blue

/// `share` of the way from one colour to another.
Colour mix(Colour from, Colour to, double share);

/// A picture to draw on; what lies outside of it is not drawn.
class Picture {
 public:
  Picture(int width, int height, Colour background);

  int width() const { return width_; }
  int height() const { return height_; }
  void fill(int x, int y, int width, int height, Colour colour);
  /// Bytes [side, side], 0 as `paper` and 255 as `ink`, each pixel as a square of `scale` pixels.
  void drawImage(int x, int y, std::span<const std::uint8_t> bytes, int side, int scale, Colour paper,
                 Colour ink);
  /// Digits, '>', and the letters of "TRUE" and "PREDICTED", 5 x 7 pixels a sign, times `scale`. Other signs
  /// are left blank.
  void drawText(int x, int y, std::string_view text, int scale, Colour colour);
  static int textWidth(std::string_view text, int scale);
  static constexpr int textHeight(int scale) { return 7 * scale; }

  /// @throws muster::FileError.
  void save(const std::filesystem::path& path) const;

 private:
  int width_;
  int height_;
  std::vector<std::uint8_t> pixels_;  // [height, width, 3]
};

}  // namespace example
