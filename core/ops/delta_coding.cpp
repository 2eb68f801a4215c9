#include "muster/core/ops/delta_coding.h"

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/delta_coding_rules.h"

namespace muster {
namespace {

void check(const Tensor& tensor, const Tensor& like, const Context& context) {
  const bool real =
      tensor.defined() && (tensor.dtype() == DType::Float32 || tensor.dtype() == DType::Float64);
  if (real && tensor.dtype() == like.dtype() && tensor.layout() == Layout::RowMajor &&
      tensor.elements() == like.elements() && tensor.device() == context.device())
    return;
  throw InvalidArgument(fmt::format(
      "codeDelta: expected float32 or float64, row-major, with {} elements on {}, all of one type, got {}",
      like.elements(), context.device().toString(), tensor.toString()));
}

}  // namespace

void codeDelta(const DeltaCoding& coding, const Tensor& values, const Tensor& sent, const Tensor& residual,
               std::int64_t begin, std::int64_t end, Context& context) {
  for (const Tensor& tensor : {values, sent, residual}) check(tensor, values, context);
  require(0 <= begin && begin <= end && end <= values.elements(),
          "codeDelta: [{}, {}) does not lie in {} elements", begin, end, values.elements());
  require(coding.remember >= 0 && coding.remember <= 1, "codeDelta: remember must lie in [0, 1], got {}",
          coding.remember);
  require(coding.codec != DeltaCodec::TopK || (coding.largest >= 0 && coding.largest <= end - begin),
          "codeDelta: of {} elements {} cannot be the largest", end - begin, coding.largest);
  if (begin == end) return;
  if (context.device().isCpu()) return cpu::codeDelta(coding, values, sent, residual, begin, end, context);
  if constexpr (kCudaBuilt) return cuda::codeDelta(coding, values, sent, residual, begin, end, context);
  throw DeviceUnavailable("codeDelta: this build has no CUDA");
}

std::int64_t codedBytes(const DeltaCoding& coding, std::int64_t elements) {
  const std::int64_t chunks = (elements + coding::kChunk - 1) / coding::kChunk;
  switch (coding.codec) {
    case DeltaCodec::Bf16:
      return 2 * elements;
    case DeltaCodec::Int8:
      return elements + 4 * chunks;
    case DeltaCodec::E3M0:
      return (elements + 1) / 2 + chunks;
    case DeltaCodec::TopK:
      return 8 * coding.largest;
  }
  return 0;
}

}  // namespace muster
