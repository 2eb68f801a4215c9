#include "muster/core/ops/threshold.h"

#include <cmath>
#include <limits>
#include <string_view>

#include "muster/core/base/error.h"

namespace muster {
namespace {

constexpr std::int64_t kElementsPerMapWord = 16;

std::int64_t mapWords(std::int64_t elements) {
  return (elements + kElementsPerMapWord - 1) / kElementsPerMapWord;
}

void checkVector(const Tensor& tensor, std::int64_t elements, std::string_view name, std::string_view op) {
  if (!(tensor.defined() && tensor.dtype() == DType::Float32 && tensor.layout() == Layout::RowMajor &&
        tensor.elements() == elements))
    throw InvalidArgument(fmt::format("{}: {} must be float32, row-major and of {} elements, got {}", op,
                                      name, elements, tensor.toString()));
  if (!tensor.device().isCpu()) throw DeviceUnavailable(fmt::format("{}: this build has no CUDA", op));
}

void checkThreshold(float threshold, std::string_view op) {
  require(std::isfinite(threshold) && threshold > 0, "{}: the threshold must be above 0, got {}", op,
          threshold);
}

}  // namespace

ThresholdMessage::ThresholdMessage(std::int64_t count) : elements(count) {
  require(count >= 0 && count <= std::numeric_limits<std::int32_t>::max(),
          "threshold message: {} elements cannot be numbered in 31 bits", count);
  words.resize(static_cast<std::size_t>(mapWords(count)));
}

void ThresholdMessage::clear() {
  nonZero = 0;
  isMap = false;
}

std::int64_t ThresholdMessage::wordCount() const {
  return isMap ? mapWords(elements) : nonZero;
}

std::int64_t accumulateUpdate(const Tensor& values, const Tensor& base, float threshold, Tensor& residual) {
  checkVector(values, values.elements(), "values", "accumulateUpdate");
  checkVector(base, values.elements(), "base", "accumulateUpdate");
  checkVector(residual, values.elements(), "residual", "accumulateUpdate");
  checkThreshold(threshold, "accumulateUpdate");
  const auto counts = cpu::accumulateUpdate(values, base, threshold, residual);
  if (counts.notFinite > 0)
    throw NonFiniteScore(fmt::format(
        "{} of {} elements of the update are not finite; a lower learning rate or clipping may help",
        counts.notFinite, values.elements()));
  return counts.reaching;
}

void encodeThreshold(Tensor& residual, float threshold, std::int64_t nonZero, ThresholdMessage& message) {
  checkVector(residual, message.elements, "residual", "encodeThreshold");
  checkThreshold(threshold, "encodeThreshold");
  require(nonZero >= 0 && nonZero <= message.elements, "encodeThreshold: {} of {} elements cannot be",
          nonZero, message.elements);
  message.threshold = threshold;
  message.nonZero = nonZero;
  message.isMap = nonZero > mapWords(message.elements);
  cpu::encodeThreshold(residual, threshold, nonZero, message);
}

void addDecoded(const ThresholdMessage& message, float scale, std::int64_t begin, std::int64_t end,
                Tensor& out) {
  checkVector(out, message.elements, "out", "addDecoded");
  require(0 <= begin && begin <= end && end <= message.elements,
          "addDecoded: [{}, {}) does not lie in {} elements", begin, end, message.elements);
  cpu::addDecoded(message, scale, begin, end, out);
}

void clampElements(Tensor& values, float limit) {
  checkVector(values, values.elements(), "values", "clampElements");
  require(limit >= 0, "clampElements: the limit cannot be negative, got {}", limit);
  cpu::clampElements(values, limit);
}

}  // namespace muster
