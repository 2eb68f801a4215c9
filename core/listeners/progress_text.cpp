#include "muster/core/listeners/progress_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "muster/core/base/plural.h"

namespace muster {
namespace {

constexpr int kWidestBar = 40;
constexpr int kNarrowestBar = 8;

/// For example `7.3 s`; from a minute on the same as `durationText`.
std::string fineDuration(double seconds) {
  return seconds < 59.95 ? fmt::format("{:.1f} s", seconds) : durationText(seconds);
}

/// The finished share of the epoch, if its length is known.
std::optional<double> fraction(const Progress& p) {
  if (p.batchesPerEpoch.value_or(0) <= 0) return std::nullopt;
  return std::min(1.0, static_cast<double>(p.batches) / static_cast<double>(*p.batchesPerEpoch));
}

/// Percent, rounded down, so 100 means finished.
int wholePercent(double share) {
  return static_cast<int>(share * 100);
}

std::string epochText(const Progress& p) {
  return fmt::format("epoch {}/{}", p.epoch, p.epochs);
}

std::string batchesText(const Progress& p) {
  if (fraction(p)) return fmt::format("{}/{}", p.batches, *p.batchesPerEpoch);
  return plural(p.batches, "batch", "batches");
}

std::string rateText(const Progress& p) {
  if (p.elapsed.count() <= 0 || p.examples == 0) return "";
  return fmt::format("{:.0f} samples/s", static_cast<double>(p.examples) / p.elapsed.count());
}

std::string scoreText(const Progress& p) {
  return p.score ? fmt::format("score {}", scoreDigits(*p.score)) : "";
}

std::string timeLeftText(const Progress& p) {
  const auto done = fraction(p);
  if (!done || *done <= 0) return "";
  return fmt::format("{} left", durationText(p.elapsed.count() * (1 - *done) / *done));
}

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const auto& part : parts)
    if (!part.empty()) text += (text.empty() ? "" : "  ") + part;
  return text;
}

void appendAfterComma(std::string& text, const std::string& part) {
  if (!part.empty()) text += ", " + part;
}

}  // namespace

std::string meter(double share, int width) {
  const int inside = width - 2;
  const int filled = std::min(inside, static_cast<int>(share * inside));
  std::string text(static_cast<std::size_t>(filled), '=');
  if (filled < inside) text += '>';
  text.resize(static_cast<std::size_t>(inside), ' ');
  return fmt::format("[{}]", text);
}

std::string scoreDigits(double score) {
  return std::abs(score) < 1e5 ? fmt::format("{:.4f}", score) : fmt::format("{:.3e}", score);
}

std::string durationText(double seconds) {
  const auto s = static_cast<std::int64_t>(std::ceil(seconds));
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

std::string progressBar(const Progress& p, int columns) {
  if (columns <= 0) return "";
  const auto width = static_cast<std::size_t>(columns);
  const auto share = fraction(p);
  const std::string percentText = share ? fmt::format("{:>3}%", wholePercent(*share)) : "";
  std::string batches = batchesText(p), rate = rateText(p), score = scoreText(p), left = timeLeftText(p);
  const auto rest = [&] {
    return join({epochText(p) + (share ? " " + percentText : ""), batches, rate, score, left});
  };
  for (std::string* leastImportant : {&rate, &batches, &left, &score}) {
    if (rest().size() <= width) break;
    leastImportant->clear();
  }
  std::string text = rest();
  if (text.size() > width) return text.substr(0, width);
  const int room = columns - static_cast<int>(text.size()) - 1;
  if (!share || room < kNarrowestBar) return text;
  const std::size_t behindPercent = epochText(p).size() + 1 + percentText.size();
  text.insert(behindPercent, fmt::format(" {}", meter(*share, std::min(room, kWidestBar))));
  return text;
}

std::string progressLine(const Progress& p) {
  const auto share = fraction(p);
  std::string text = epochText(p) + ": ";
  text += share ? fmt::format("{} % ({} of {})", wholePercent(*share), p.batches,
                              plural(*p.batchesPerEpoch, "batch", "batches"))
                : batchesText(p);
  for (const auto& part : {rateText(p), scoreText(p), timeLeftText(p)}) appendAfterComma(text, part);
  return text;
}

std::string epochLine(const Progress& p) {
  std::string text = epochText(p) + ": ";
  if (p.score) text += scoreText(p) + ", ";
  text += fmt::format("{} in {}", plural(p.examples, "example"), fineDuration(p.elapsed.count()));
  appendAfterComma(text, rateText(p));
  return text;
}

}  // namespace muster
