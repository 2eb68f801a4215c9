#include "muster/core/listeners/score_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "muster/core/listeners/progress_text.h"

namespace muster {
namespace {

constexpr int kNarrowest = 20;
constexpr int kLabel = 11;  // width of "-1.235e+35" and a space

/// A grid of dots; each character shows several of them.
class Dots {
 public:
  Dots(int columns, int rows, bool braille)
      : braille_(braille), columns_(columns), rows_(rows), cells_(static_cast<std::size_t>(columns * rows)) {}

  int width() const { return columns_ * (braille_ ? 2 : 1); }
  int height() const { return rows_ * (braille_ ? 4 : 2); }

  /// @param y  from the top.
  void set(int x, int y) {
    // [column][row] the dot's bit in braille characters, which start at U+2800.
    static constexpr unsigned kBraille[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};
    const int across = width() / columns_, down = height() / rows_;
    auto& cell = cells_[static_cast<std::size_t>(y / down * columns_ + x / across)];
    cell |= braille_ ? kBraille[x % across][y % down] : 1U << (y % down);
  }

  std::string row(int y) const {
    static constexpr std::string_view kAscii[] = {" ", "'", ".", ":"};
    std::string text;
    for (int x = 0; x < columns_; ++x) {
      const unsigned cell = cells_[static_cast<std::size_t>(y * columns_ + x)];
      if (!braille_)
        text += kAscii[cell];
      else if (cell == 0)
        text += ' ';
      else  // U+2800 + cell in UTF-8
        text.append({static_cast<char>(0xE2), static_cast<char>(0xA0 | (cell >> 6)),
                     static_cast<char>(0x80 | (cell & 0x3F))});
    }
    return text;
  }

 private:
  bool braille_;
  int columns_, rows_;
  std::vector<unsigned> cells_;
};

}  // namespace

void ScoreCurve::add(double score, std::int64_t weight) {
  if (weight <= 0) return;
  if (bins_.empty() || bins_.back().scores == scoresPerBin_) {
    if (bins_.size() == kBins) join();
    bins_.emplace_back();
  }
  Bin& bin = bins_.back();
  bin.sum += score * static_cast<double>(weight);
  bin.weight += static_cast<double>(weight);
  ++bin.scores;
}

void ScoreCurve::join() {
  for (std::size_t i = 0; i < kBins / 2; ++i) {
    const Bin &one = bins_[2 * i], &other = bins_[2 * i + 1];
    bins_[i] = {one.sum + other.sum, one.weight + other.weight, one.scores + other.scores};
  }
  bins_.resize(kBins / 2);
  scoresPerBin_ *= 2;
}

std::string ScoreCurve::draw(int columns, int rows, bool braille) const {
  if (bins_.size() < 2 || columns < kNarrowest) return "";
  std::vector<double> means;
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const auto& bin : bins_) {
    means.push_back(bin.sum / bin.weight);
    if (!std::isfinite(means.back())) continue;
    least = std::min(least, means.back());
    most = std::max(most, means.back());
  }
  if (least > most) return "";

  Dots dots(columns - kLabel, rows, braille);
  const auto heightOf = [&](double mean) {
    const double share = most > least ? mean / (most - least) - least / (most - least) : 0.5;
    return static_cast<int>(std::lround((1 - share) * (dots.height() - 1)));
  };
  std::optional<int> before;
  for (int x = 0; x < dots.width(); ++x) {
    const double at = static_cast<double>(x) * static_cast<double>(means.size() - 1) / (dots.width() - 1);
    const auto left = static_cast<std::size_t>(at);
    const auto right = std::min(left + 1, means.size() - 1);
    const double share = at - static_cast<double>(left);
    const double mean = share > 0 ? means[left] * (1 - share) + means[right] * share : means[left];
    if (!std::isfinite(mean)) {
      before.reset();
      continue;
    }
    const int y = heightOf(mean);
    for (int d = std::min(y, before.value_or(y)); d <= std::max(y, before.value_or(y)); ++d) dots.set(x, d);
    before = y;
  }
  std::string text;
  for (int y = 0; y < rows; ++y) {
    const auto label = y == 0 ? scoreDigits(most) : y == rows - 1 ? scoreDigits(least) : "";
    text += fmt::format("{}{:>{}} {}", y > 0 ? "\n" : "", label, kLabel - 1, dots.row(y));
  }
  return text;
}

}  // namespace muster
