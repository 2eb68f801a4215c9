#include "examples/mnist_convnet/picture.h"

#include <algorithm>
#include <cmath>

#include "muster/core/io/png.h"

namespace example {
namespace {

constexpr int kGlyphWidth = 5;
constexpr int kGlyphHeight = 7;
constexpr int kAdvance = kGlyphWidth + 1;

struct Glyph {
  char sign;
  std::array<std::uint8_t, kGlyphHeight> rows;  // bit 4 is the leftmost pixel
};

constexpr Glyph kGlyphs[] = {
    {'0', {0x0E, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0E}}, {'1', {0x04, 0x0C, 0x04, 0x04, 0x04, 0x04, 0x0E}},
    {'2', {0x0E, 0x11, 0x01, 0x02, 0x04, 0x08, 0x1F}}, {'3', {0x1F, 0x02, 0x04, 0x02, 0x01, 0x11, 0x0E}},
    {'4', {0x02, 0x06, 0x0A, 0x12, 0x1F, 0x02, 0x02}}, {'5', {0x1F, 0x10, 0x1E, 0x01, 0x01, 0x11, 0x0E}},
    {'6', {0x06, 0x08, 0x10, 0x1E, 0x11, 0x11, 0x0E}}, {'7', {0x1F, 0x01, 0x02, 0x04, 0x08, 0x08, 0x08}},
    {'8', {0x0E, 0x11, 0x11, 0x0E, 0x11, 0x11, 0x0E}}, {'9', {0x0E, 0x11, 0x11, 0x0F, 0x01, 0x02, 0x0C}},
    {'>', {0x08, 0x04, 0x02, 0x01, 0x02, 0x04, 0x08}}, {'C', {0x0E, 0x11, 0x10, 0x10, 0x10, 0x11, 0x0E}},
    {'D', {0x1C, 0x12, 0x11, 0x11, 0x11, 0x12, 0x1C}}, {'E', {0x1F, 0x10, 0x10, 0x1E, 0x10, 0x10, 0x1F}},
    {'I', {0x0E, 0x04, 0x04, 0x04, 0x04, 0x04, 0x0E}}, {'P', {0x1E, 0x11, 0x11, 0x1E, 0x10, 0x10, 0x10}},
    {'R', {0x1E, 0x11, 0x11, 0x1E, 0x14, 0x12, 0x11}}, {'T', {0x1F, 0x04, 0x04, 0x04, 0x04, 0x04, 0x04}},
    {'U', {0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0E}},
};

}  // namespace

Colour mix(Colour from, Colour to, double share) {
  Colour colour{};
  for (std::size_t i = 0; i < colour.size(); ++i)
    colour[i] = static_cast<std::uint8_t>(std::lround(from[i] + (to[i] - from[i]) * share));
  return colour;
}

Picture::Picture(int width, int height, Colour background)
    : width_(width), height_(height), pixels_(static_cast<std::size_t>(width) * height * 3) {
  fill(0, 0, width, height, background);
}

void Picture::fill(int x, int y, int width, int height, Colour colour) {
  for (int row = std::max(y, 0); row < std::min(y + height, height_); ++row)
    for (int column = std::max(x, 0); column < std::min(x + width, width_); ++column)
      std::ranges::copy(colour, &pixels_[(static_cast<std::size_t>(row) * width_ + column) * 3]);
}

void Picture::drawImage(int x, int y, std::span<const std::uint8_t> bytes, int side, int scale, Colour paper,
                        Colour ink) {
  for (int row = 0; row < side; ++row)
    for (int column = 0; column < side; ++column)
      fill(x + column * scale, y + row * scale, scale, scale,
           mix(paper, ink, bytes[static_cast<std::size_t>(row) * side + column] / 255.0));
}

void Picture::drawText(int x, int y, std::string_view text, int scale, Colour colour) {
  for (const char sign : text) {
    const auto* glyph = std::ranges::find(kGlyphs, sign, &Glyph::sign);
    if (glyph != std::end(kGlyphs))
      for (int row = 0; row < kGlyphHeight; ++row)
        for (int column = 0; column < kGlyphWidth; ++column)
          if (glyph->rows[row] >> (kGlyphWidth - 1 - column) & 1)
            fill(x + column * scale, y + row * scale, scale, scale, colour);
    x += kAdvance * scale;
  }
}

int Picture::textWidth(std::string_view text, int scale) {
  return text.empty() ? 0 : (static_cast<int>(text.size()) * kAdvance - 1) * scale;
}

void Picture::save(const std::filesystem::path& path) const {
  muster::writePng(path, pixels_, width_, height_, muster::PngColour::Rgb);
}

}  // namespace example
