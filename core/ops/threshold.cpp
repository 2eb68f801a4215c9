#include "muster/core/ops/threshold.h"

#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>

#include "muster/built.h"
#include "muster/core/base/error.h"

namespace muster {
namespace {

constexpr std::int64_t kElementsPerMapWord = 16;

std::int64_t mapWords(std::int64_t elements) {
  return (elements + kElementsPerMapWord - 1) / kElementsPerMapWord;
}

void checkVector(const Tensor& tensor, std::int64_t elements, std::string_view name, std::string_view op,
                 const Context& context) {
  if (!(tensor.defined() && tensor.dtype() == DType::Float32 && tensor.layout() == Layout::RowMajor &&
        tensor.elements() == elements && tensor.device() == context.device()))
    throw InvalidArgument(fmt::format("{}: {} must be float32, row-major and of {} elements on {}, got {}",
                                      op, name, elements, context.device().toString(), tensor.toString()));
}

void checkThreshold(float threshold, std::string_view op) {
  require(std::isfinite(threshold) && threshold > 0, "{}: the threshold must be above 0, got {}", op,
          threshold);
}

ResidualCounts accumulate(const Tensor& values, const Tensor& base, float threshold, Tensor& residual,
                          Context& context) {
  if (context.device().isCpu()) return cpu::accumulateUpdate(values, base, threshold, residual);
  if constexpr (kCudaBuilt) return cuda::accumulateUpdate(values, base, threshold, residual, context);
  throw DeviceUnavailable("accumulateUpdate: this build has no CUDA");
}

}  // namespace

ThresholdMessage::ThresholdMessage(std::int64_t count) : elements(count) {
  require(count >= 0 && count <= std::numeric_limits<std::int32_t>::max(),
          "threshold message: {} elements cannot be numbered in 31 bits", count);
  words.resize(static_cast<std::size_t>(mapWords(count)));
}

std::int64_t ThresholdMessage::mostBytes(std::int64_t elements) {
  return mapWords(elements) * static_cast<std::int64_t>(sizeof(std::uint32_t));
}

void ThresholdMessage::clear() {
  nonZero = 0;
  isMap = false;
}

void ThresholdMessage::expect(std::int64_t nonZeroElements, float itsThreshold) {
  require(nonZeroElements >= 0 && nonZeroElements <= elements,
          "threshold message: {} of {} elements cannot be sent", nonZeroElements, elements);
  require(nonZeroElements == 0 || (std::isfinite(itsThreshold) && itsThreshold > 0),
          "threshold message: its threshold must be above 0, got {}", itsThreshold);
  nonZero = nonZeroElements;
  threshold = itsThreshold;
  isMap = nonZero > mapWords(elements);
}

void ThresholdMessage::check() const {
  constexpr std::uint32_t kPositive = 0x55555555;
  const auto valid = std::span(words).first(static_cast<std::size_t>(wordCount()));
  std::int64_t count = 0;
  bool possible = true;
  if (isMap) {
    for (const std::uint32_t word : valid) {
      possible = possible && (word & word >> 1 & kPositive) == 0;
      count += std::popcount(word);
    }
    const auto inLast = elements % kElementsPerMapWord;
    possible = possible && count == nonZero && (inLast == 0 || valid.back() >> (2 * inLast) == 0);
  } else {
    for (std::size_t i = 0; i < valid.size(); ++i)
      possible = possible && valid[i] / 2 < elements && (i == 0 || valid[i - 1] / 2 < valid[i] / 2);
  }
  require(possible, "threshold message: its words do not encode {} of {} elements", nonZero, elements);
}

std::int64_t ThresholdMessage::wordCount() const {
  return isMap ? mapWords(elements) : nonZero;
}

std::int64_t accumulateUpdate(const Tensor& values, const Tensor& base, float threshold, Tensor& residual,
                              Context& context) {
  const std::string_view op = "accumulateUpdate";
  checkVector(values, values.elements(), "values", op, context);
  checkVector(base, values.elements(), "base", op, context);
  checkVector(residual, values.elements(), "residual", op, context);
  checkThreshold(threshold, op);
  const ResidualCounts counts = accumulate(values, base, threshold, residual, context);
  if (counts.notFinite > 0)
    throw NonFiniteScore(fmt::format(
        "{} of {} elements of the update are not finite; a lower learning rate or clipping may help",
        counts.notFinite, values.elements()));
  return counts.reaching;
}

void encodeThreshold(Tensor& residual, float threshold, std::int64_t nonZero, ThresholdMessage& message,
                     Context& context) {
  checkVector(residual, message.elements, "residual", "encodeThreshold", context);
  checkThreshold(threshold, "encodeThreshold");
  require(nonZero >= 0 && nonZero <= message.elements, "encodeThreshold: {} of {} elements cannot be",
          nonZero, message.elements);
  message.threshold = threshold;
  message.nonZero = nonZero;
  message.isMap = nonZero > mapWords(message.elements);
  if (context.device().isCpu()) return cpu::encodeThreshold(residual, threshold, nonZero, message);
  if constexpr (kCudaBuilt) return cuda::encodeThreshold(residual, threshold, message, context);
  throw DeviceUnavailable("encodeThreshold: this build has no CUDA");
}

void addDecoded(const ThresholdMessage& message, float scale, std::int64_t begin, std::int64_t end,
                Tensor& out, Context& context) {
  checkVector(out, message.elements, "out", "addDecoded", context);
  require(0 <= begin && begin <= end && end <= message.elements,
          "addDecoded: [{}, {}) is not within {} elements", begin, end, message.elements);
  if (context.device().isCpu()) return cpu::addDecoded(message, scale, begin, end, out);
  if constexpr (kCudaBuilt) return cuda::addDecoded(message, scale, begin, end, out, context);
  throw DeviceUnavailable("addDecoded: this build has no CUDA");
}

void clampElements(Tensor& values, float limit, Context& context) {
  checkVector(values, values.elements(), "values", "clampElements", context);
  require(limit >= 0, "clampElements: the limit cannot be negative, got {}", limit);
  if (context.device().isCpu()) return cpu::clampElements(values, limit);
  if constexpr (kCudaBuilt) return cuda::clampElements(values, limit, context);
  throw DeviceUnavailable("clampElements: this build has no CUDA");
}

}  // namespace muster
