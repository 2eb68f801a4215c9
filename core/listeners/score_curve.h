#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster {

/// The scores of a training as a curve of a few lines. However many there are, it keeps 256 means at most,
/// each over the same number of scores; when they are full, neighbours are joined.
class ScoreCurve {
 public:
  /// Without scores.
  ScoreCurve() { bins_.reserve(kBins); }

  /// @param weight  of the score in its mean: examples. Allocates nothing.
  void add(double score, std::int64_t weight);

  /// Lines with '\n' between them, `columns` wide; the first and the last begin with the largest and the
  /// smallest score. Where scores are not finite, the curve has a gap.
  /// @param rows  at least 2.  @param braille  dots of 2 x 4 in a column, as UTF-8; otherwise ASCII, 1 x 2.
  /// @return "" for fewer than two scores or 20 columns.
  std::string draw(int columns, int rows, bool braille) const;

 private:
  static constexpr std::size_t kBins = 256;
  struct Bin {
    double sum = 0;
    double weight = 0;
    std::int64_t scores = 0;
  };
  void join();

  std::vector<Bin> bins_;
  std::int64_t scoresPerBin_ = 1;
};

}  // namespace muster
