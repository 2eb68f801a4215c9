#include "muster/core/optim/finite_gradient.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "muster/core/ops/largest_magnitude.h"

namespace muster {
namespace {

constexpr std::string_view kAdvice =
    "a lower learning rate or clipping may help, or the data hold a value that is not finite";

struct BadElement {
  std::int64_t at;
  double value;
};

template <typename T>
BadElement firstBad(const T* x) {
  std::int64_t at = 0;
  while (std::isfinite(x[at])) ++at;
  return {at, std::isnan(x[at]) ? std::abs(x[at]) : x[at]};
}

/// Examines n numbers. @return the largest magnitude, and the first element that is not finite, if any.
std::pair<double, std::optional<BadElement>> scan(const Tensor& values, std::int64_t begin, std::int64_t n) {
  const bool wide = values.dtype() == DType::Float64;
  if (!wide && values.dtype() != DType::Float32) return {};
  const double largest = largestMagnitude(values, begin, begin + n);
  if (std::isfinite(largest)) return {largest, std::nullopt};
  return {std::numeric_limits<double>::infinity(),
          wide ? firstBad(values.data<double>() + begin) : firstBad(values.data<float>() + begin)};
}

/// A part of a block that errors name: a segment, or a whole block that has no segments.
struct Part {
  std::string_view name;
  std::int64_t begin, elements;
  bool frozen;
};

/// Calls `visit` with each part of a block on the CPU.
template <typename Visit>
void forEachPart(const StateBlock& block, Visit visit) {
  if (!block.values.device().isCpu()) return;
  if (!block.segments || block.segments->segments.empty())
    return visit(Part{block.name, 0, block.values.elements(), false});
  for (const auto& segment : block.segments->segments)
    visit(Part{segment.name, segment.offset, segment.shape.elements(), segment.frozen});
}

}  // namespace

void requireFiniteGradient(const StateBlock& gradients) {
  forEachPart(gradients, [&](const Part& part) {
    if (part.frozen) return;
    if (const auto bad = scan(gradients.values, part.begin, part.elements).second)
      throw UpdateRefused(fmt::format("the gradient of {} is not finite: element {} is {}; {}", part.name,
                                      bad->at, bad->value, kAdvice));
  });
}

double requireFiniteBlock(const StateBlock& block, std::string_view what) {
  double largest = 0;
  forEachPart(block, [&](const Part& part) {
    const auto [magnitude, bad] = scan(block.values, part.begin, part.elements);
    if (bad)
      throw NonFiniteScore(fmt::format("{} of {} are not finite: element {} is {}; {}", what, part.name,
                                       bad->at, bad->value, kAdvice));
    largest = std::max(largest, magnitude);
  });
  return largest;
}

void requireFiniteStatistics(std::span<const StateBlock> blocks) {
  for (const auto& block : blocks)
    if (block.kind == BlockKind::Statistics) requireFiniteBlock(block, "the statistics");
}

void refuseUpdate(const StateBlock& parameters, const StateBlock& gradients) {
  requireFiniteGradient(gradients);
  std::string name = "the parameters";
  double largest = -1;
  forEachPart(gradients, [&](const Part& part) {
    if (part.frozen) return;
    const double magnitude = std::max(scan(gradients.values, part.begin, part.elements).first,
                                      scan(parameters.values, part.begin, part.elements).first);
    if (magnitude > largest) name = part.name;
    largest = std::max(largest, magnitude);
  });
  throw UpdateRefused(
      fmt::format("an update would leave numbers that are not finite; the largest gradient or parameter is "
                  "{:.3g}, in {}; {}",
                  largest, name, kAdvice));
}

void throwNonFiniteGradient(const SegmentTable& segments, std::int64_t element) {
  for (const auto& segment : segments.segments)
    if (const std::int64_t at = element - segment.offset; at >= 0 && at < segment.shape.elements())
      throw UpdateRefused(
          fmt::format("the gradient of {} is not finite: element {}; {}", segment.name, at, kAdvice));
  throw UpdateRefused(fmt::format("the gradient is not finite: element {}; {}", element, kAdvice));
}

}  // namespace muster
