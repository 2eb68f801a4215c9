#include "muster/core/ops/reorder.h"

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster {
namespace {

/// Checks all except x's element type.
void requireFits(std::string_view op, const Tensor& x, const Tensor& y) {
  detail::expectTensor(op, "y", y, {x.shape(), y.layout(), DType::Float32, x.device()});
  if (!x.defined() || (x.layout() != y.layout() && x.shape().rank() != 4))
    throw InvalidArgument(
        fmt::format("{}: {} cannot be written to {}; layouts other than row-major are for [N, C, H, W]", op,
                    x.toString(), y.toString()));
}

}  // namespace

void reorder(const Tensor& x, Tensor& y, Context& context) {
  requireFits("reorder", x, y);
  detail::expectLike("reorder", "x", x, x);
  if (x.device().isCpu()) return cpu::reorder(x, y, context);
  if constexpr (kCudaBuilt) return cuda::reorder(x, y, context);
  throw DeviceUnavailable("reorder: this build has no CUDA");
}

void loadFeatures(const Tensor& x, Tensor& y, Context& context) {
  requireFits("loadFeatures", x, y);
  if (x.dtype() != DType::UInt8) detail::expectLike("loadFeatures", "x", x, x);
  if (x.device().isCpu()) return cpu::loadFeatures(x, y, context);
  if constexpr (kCudaBuilt) return cuda::loadFeatures(x, y, context);
  throw DeviceUnavailable("loadFeatures: this build has no CUDA");
}

void loadIndices(const Tensor& x, Tensor& y, Context& context) {
  detail::expectTensor("loadIndices", "y", y, {y.shape(), Layout::RowMajor, DType::Int64, y.device()});
  const bool fits = x.defined() && x.shape() == y.shape() && x.layout() == Layout::RowMajor &&
                    x.device() == y.device() && (x.dtype() == DType::Int64 || x.dtype() == DType::UInt8);
  if (!fits) [[unlikely]]  // the message is formatted only on failure
    throw InvalidArgument(fmt::format("loadIndices: expected indices {} as int64 or uint8, got {}",
                                      y.shape().toString(), x.toString()));
  if (x.device().isCpu()) return cpu::loadIndices(x, y, context);
  if constexpr (kCudaBuilt) return cuda::loadIndices(x, y, context);
  throw DeviceUnavailable("loadIndices: this build has no CUDA");
}

}  // namespace muster
