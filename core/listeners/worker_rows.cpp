#include "muster/core/listeners/worker_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "muster/core/base/plural.h"
#include "muster/core/listeners/progress_text.h"

namespace muster {
namespace {

constexpr int kWidestShares = 40;
constexpr int kNarrowestShares = 8;

/// A kind of worker time as drawn; the letter means the same as the colour.
struct Kind {
  double PerformanceReport::Shares::*share;
  char letter;
  int colour;
};
constexpr std::array<Kind, 4> kKinds{{{&PerformanceReport::Shares::computing, '#', 32},
                                      {&PerformanceReport::Shares::waitingForData, 'd', 33},
                                      {&PerformanceReport::Shares::waitingForWorkers, 's', 35},
                                      {&PerformanceReport::Shares::merging, 'm', 36}}};

std::string barOf(const PerformanceReport::Shares& shares, int width, bool colour) {
  std::string text;
  double sum = 0;
  int drawn = 0;
  for (const auto& kind : kKinds) {
    sum += shares.*kind.share;
    const int end = std::clamp(static_cast<int>(std::lround(sum * width)), drawn, width);
    const std::string letters(static_cast<std::size_t>(end - drawn), kind.letter);
    if (!letters.empty()) text += colour ? fmt::format("\x1b[{}m{}\x1b[0m", kind.colour, letters) : letters;
    drawn = end;
  }
  return text;
}

std::string upTo(std::string text, int columns) {
  text.resize(std::min(text.size(), static_cast<std::size_t>(std::max(columns, 0))));
  return text;
}

}  // namespace

std::string workerRows(const std::vector<WorkerRow>& workers, int columns, int rows, bool colour) {
  if (workers.empty() || rows < 2) return "";
  const auto all = static_cast<int>(workers.size());
  const int shown = all < rows ? all : rows - 2;
  const auto digits = fmt::format("{}", all - 1).size();
  std::string text;
  for (int w = 0; w < shown; ++w) {
    const auto& worker = workers[static_cast<std::size_t>(w)];
    const auto score = worker.score ? scoreDigits(*worker.score) : "";
    const auto line = fmt::format("worker {:>{}}  score {:<9}  {:>7.0f} samples/s", w, digits, score,
                                  worker.samplesPerSecond);
    text += upTo(line, columns);
    const int room = std::min(columns - static_cast<int>(line.size()) - 2, kWidestShares);
    if (room >= kNarrowestShares) text += "  " + barOf(worker.shares, room, colour);
    text += '\n';
  }
  if (shown < all) text += upTo("and " + plural(all - shown, "more worker"), columns) + '\n';
  return text + upTo("# computing, d waiting for data, s synchronising, m merging", columns);
}

}  // namespace muster
