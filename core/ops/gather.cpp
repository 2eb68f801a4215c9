#include "muster/core/ops/gather.h"

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster {
namespace {

bool fits(const Tensor& source, const Tensor& rows, const Tensor& target) {
  return source.defined() && rows.defined() && target.defined() && source.shape().rank() > 0 &&
         rows.shape().rank() == 1 && source.layout() == Layout::RowMajor &&
         target.layout() == Layout::RowMajor && target.dtype() == source.dtype() &&
         target.device() == source.device() &&
         target.shape() == source.shape().dropFirst().prepend(rows.elements());
}

}  // namespace

void gatherRows(const Tensor& source, const Tensor& rows, Tensor& target, Context& context) {
  if (!fits(source, rows, target)) [[unlikely]]
    throw InvalidArgument(fmt::format("gather: rows {} of {} do not make {}", rows.toString(),
                                      source.toString(), target.toString()));
  detail::expectTensor("gather", "rows", rows,
                       {.shape = rows.shape(), .dtype = DType::Int64, .device = source.device()});
  if (source.device().isCpu()) return cpu::gatherRows(source, rows, target);
  if constexpr (kCudaBuilt) return cuda::gatherRows(source, rows, target, context);
  throw DeviceUnavailable("gather: this build has no CUDA");
}

}  // namespace muster
