#include "muster/core/ops/delta_coding.h"

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/delta_coding_rules.h"
#include "muster/core/ops/detail/expect.h"

namespace muster {
namespace {

void requireReal(const Tensor& tensor, const Tensor& like, const Context& context) {
  const bool real =
      tensor.defined() && (tensor.dtype() == DType::Float32 || tensor.dtype() == DType::Float64);
  if (real && tensor.dtype() == like.dtype() && tensor.layout() == Layout::RowMajor &&
      tensor.elements() == like.elements() && tensor.device() == context.device())
    return;
  throw InvalidArgument(fmt::format(
      "codeDelta: expected float32 or float64, row-major, with {} elements on {}, all of one type, got {}",
      like.elements(), context.device().toString(), tensor.toString()));
}

void checkCoding(const DeltaCoding& coding, const Tensor& values, std::int64_t begin, std::int64_t end) {
  require(0 <= begin && begin <= end && end <= values.elements(),
          "codeDelta: [{}, {}) is not within {} elements", begin, end, values.elements());
  require(coding.remember >= 0 && coding.remember <= 1, "codeDelta: remember must be in [0, 1], got {}",
          coding.remember);
  require(coding.codec != DeltaCodec::TopK || (coding.largest >= 0 && coding.largest <= end - begin),
          "codeDelta: of {} elements {} cannot be the largest", end - begin, coding.largest);
}

void checkPacked(const DeltaCoding& coding, const Tensor& values, std::int64_t elements, std::size_t packed) {
  require(elements <= std::int64_t{1} << 32,
          "packDelta: {} elements are more than positions of 32 bits reach", elements);
  require(packed == static_cast<std::size_t>(codedBytes(coding, elements, values.dtype())),
          "packDelta: {} elements do not take {} bytes", elements, packed);
}

}  // namespace

void codeDelta(const DeltaCoding& coding, const Tensor& values, const Tensor& sent, const Tensor& residual,
               std::int64_t begin, std::int64_t end, Context& context) {
  for (const Tensor& tensor : {values, sent, residual}) requireReal(tensor, values, context);
  checkCoding(coding, values, begin, end);
  if (begin == end) return;
  if (context.device().isCpu()) return cpu::codeDelta(coding, values, sent, residual, begin, end, context);
  if constexpr (kCudaBuilt) return cuda::codeDelta(coding, values, sent, residual, begin, end, context);
  throw DeviceUnavailable("codeDelta: this build has no CUDA");
}

void packDelta(const DeltaCoding& coding, const Tensor& values, const Tensor& sent, const Tensor& residual,
               std::int64_t begin, std::int64_t end, std::span<std::byte> packed, Context& context) {
  for (const Tensor& tensor : {values, sent, residual}) detail::expectOnCpu("packDelta", tensor);
  for (const Tensor& tensor : {values, sent, residual}) requireReal(tensor, values, context);
  checkCoding(coding, values, begin, end);
  checkPacked(coding, values, end - begin, packed.size());
  if (begin < end) cpu::packDelta(coding, values, sent, residual, begin, end, packed, context);
}

void unpackDelta(const DeltaCoding& coding, std::span<const std::byte> packed, const Tensor& sent,
                 std::int64_t begin, std::int64_t end, Context& context) {
  detail::expectOnCpu("unpackDelta", sent);
  requireReal(sent, sent, context);
  checkCoding(coding, sent, begin, end);
  checkPacked(coding, sent, end - begin, packed.size());
  if (begin < end) cpu::unpackDelta(coding, packed, sent, begin, end, context);
}

std::int64_t codedBytes(const DeltaCoding& coding, std::int64_t elements, DType type) {
  const std::int64_t chunks = (elements + coding::kChunk - 1) / coding::kChunk;
  switch (coding.codec) {
    case DeltaCodec::Bf16:
      return 2 * elements;
    case DeltaCodec::Int8:
      return elements + 4 * chunks;
    case DeltaCodec::E3M0:
      return (elements + 1) / 2 + chunks;
    case DeltaCodec::TopK:
      return coding.largest * static_cast<std::int64_t>(
                                  sizeOf(type) + (coding.largest < elements ? sizeof(std::uint32_t) : 0));
  }
  return 0;
}

}  // namespace muster
