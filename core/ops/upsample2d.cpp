#include "muster/core/ops/upsample2d.h"

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster {
namespace {

void requireMultiple(const Tensor& small, const Tensor& large) {
  const Shape &in = small.shape(), &out = large.shape();
  const bool fits = in.rank() == 4 && out.rank() == 4 && in.elements() > 0 && in[0] == out[0] &&
                    in[1] == out[1] && out[2] % in[2] == 0 && out[3] % in[3] == 0;
  if (!fits)
    throw InvalidArgument(fmt::format("upsample2d: {} is not {} enlarged by whole factors", large.toString(),
                                      small.toString()));
  const Device device = large.device();
  detail::expectTensor("upsample2d", "the image", small, {in, large.layout(), DType::Float32, device});
  detail::expectTensor("upsample2d", "the enlarged image", large,
                       {out, large.layout(), DType::Float32, device});
}

}  // namespace

void upsample2d(UpsampleMode mode, const Tensor& x, Tensor& y, Context& context) {
  requireMultiple(x, y);
  if (x.device().isCpu()) return cpu::upsample2d(mode, x, y, context);
  if constexpr (kCudaBuilt) return cuda::upsample2d(mode, x, y, context);
  throw DeviceUnavailable("upsample2d: this build has no CUDA");
}

void upsample2dBackward(UpsampleMode mode, const Tensor& gradY, Tensor& gradX, Context& context) {
  requireMultiple(gradX, gradY);
  if (gradX.device().isCpu()) return cpu::upsample2dBackward(mode, gradY, gradX, context);
  if constexpr (kCudaBuilt) return cuda::upsample2dBackward(mode, gradY, gradX, context);
  throw DeviceUnavailable("upsample2d: this build has no CUDA");
}

}  // namespace muster
