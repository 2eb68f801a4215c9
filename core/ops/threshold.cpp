#include "muster/core/ops/threshold.h"

#include <cmath>
#include <limits>
#include <string_view>

#include "muster/built.h"
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
  if (!tensor.device().isCpu() && !kCudaBuilt)
    throw DeviceUnavailable(fmt::format("{}: this build has no CUDA", op));
}

/// Null stands for the CPU, which needs no context.
bool onCpu(const Tensor& tensor, const Context* context, std::string_view op) {
  const Device device = context ? context->device() : Device::cpu();
  if (tensor.device() != device)
    throw InvalidArgument(
        fmt::format("{}: got {}, to compute on {}", op, tensor.toString(), device.toString()));
  return device.isCpu();
}

void checkThreshold(float threshold, std::string_view op) {
  require(std::isfinite(threshold) && threshold > 0, "{}: the threshold must be above 0, got {}", op,
          threshold);
}

ResidualCounts accumulate(const Tensor& values, const Tensor& base, float threshold, Tensor& residual,
                          Context* context) {
  const std::string_view op = "accumulateUpdate";
  checkVector(values, values.elements(), "values", op);
  checkVector(base, values.elements(), "base", op);
  checkVector(residual, values.elements(), "residual", op);
  checkThreshold(threshold, op);
  if (onCpu(values, context, op) && onCpu(base, context, op) && onCpu(residual, context, op))
    return cpu::accumulateUpdate(values, base, threshold, residual);
  if constexpr (kCudaBuilt) return cuda::accumulateUpdate(values, base, threshold, residual, *context);
  return {};
}

std::int64_t reachingOf(const ResidualCounts& counts, const Tensor& values) {
  if (counts.notFinite > 0)
    throw NonFiniteScore(fmt::format(
        "{} of {} elements of the update are not finite; a lower learning rate or clipping may help",
        counts.notFinite, values.elements()));
  return counts.reaching;
}

void encode(Tensor& residual, float threshold, std::int64_t nonZero, ThresholdMessage& message,
            Context* context) {
  checkVector(residual, message.elements, "residual", "encodeThreshold");
  checkThreshold(threshold, "encodeThreshold");
  require(nonZero >= 0 && nonZero <= message.elements, "encodeThreshold: {} of {} elements cannot be",
          nonZero, message.elements);
  message.threshold = threshold;
  message.nonZero = nonZero;
  message.isMap = nonZero > mapWords(message.elements);
  if (onCpu(residual, context, "encodeThreshold"))
    return cpu::encodeThreshold(residual, threshold, nonZero, message);
  if constexpr (kCudaBuilt) cuda::encodeThreshold(residual, threshold, message, *context);
}

void decode(const ThresholdMessage& message, float scale, std::int64_t begin, std::int64_t end, Tensor& out,
            Context* context) {
  checkVector(out, message.elements, "out", "addDecoded");
  require(0 <= begin && begin <= end && end <= message.elements,
          "addDecoded: [{}, {}) does not lie in {} elements", begin, end, message.elements);
  if (onCpu(out, context, "addDecoded")) return cpu::addDecoded(message, scale, begin, end, out);
  if constexpr (kCudaBuilt) cuda::addDecoded(message, scale, begin, end, out, *context);
}

void clamp(Tensor& values, float limit, Context* context) {
  checkVector(values, values.elements(), "values", "clampElements");
  require(limit >= 0, "clampElements: the limit cannot be negative, got {}", limit);
  if (onCpu(values, context, "clampElements")) return cpu::clampElements(values, limit);
  if constexpr (kCudaBuilt) cuda::clampElements(values, limit, *context);
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
  return reachingOf(accumulate(values, base, threshold, residual, nullptr), values);
}

std::int64_t accumulateUpdate(const Tensor& values, const Tensor& base, float threshold, Tensor& residual,
                              Context& context) {
  return reachingOf(accumulate(values, base, threshold, residual, &context), values);
}

void encodeThreshold(Tensor& residual, float threshold, std::int64_t nonZero, ThresholdMessage& message) {
  encode(residual, threshold, nonZero, message, nullptr);
}

void encodeThreshold(Tensor& residual, float threshold, std::int64_t nonZero, ThresholdMessage& message,
                     Context& context) {
  encode(residual, threshold, nonZero, message, &context);
}

void addDecoded(const ThresholdMessage& message, float scale, std::int64_t begin, std::int64_t end,
                Tensor& out) {
  decode(message, scale, begin, end, out, nullptr);
}

void addDecoded(const ThresholdMessage& message, float scale, std::int64_t begin, std::int64_t end,
                Tensor& out, Context& context) {
  decode(message, scale, begin, end, out, &context);
}

void clampElements(Tensor& values, float limit) {
  clamp(values, limit, nullptr);
}

void clampElements(Tensor& values, float limit, Context& context) {
  clamp(values, limit, &context);
}

}  // namespace muster
