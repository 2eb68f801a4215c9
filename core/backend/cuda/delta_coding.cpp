#include "muster/core/ops/delta_coding.h"

#include "muster/core/backend/cuda/kernels/delta_coding.h"
#include "muster/core/backend/cuda/state.h"

namespace muster::cuda {

void codeDelta(const DeltaCoding& coding, const Tensor& values, const Tensor& sent, const Tensor& residual,
               std::int64_t begin, std::int64_t end, Context& context) {
  const CodingCall call{
      values.raw(), sent.raw(), residual.raw(), values.dtype() == DType::Float64, coding.remember,
      begin,        end};
  const cudaStream_t stream = stateOf(context).stream();
  switch (coding.codec) {
    case DeltaCodec::Bf16:
      return MUSTER_CUDA_CHECK(launchCodeBf16(call, stream));
    case DeltaCodec::Int8:
      return MUSTER_CUDA_CHECK(launchCodeInt8(call, stream));
    case DeltaCodec::E3M0:
      return MUSTER_CUDA_CHECK(launchCodeE3M0(call, stream));
    case DeltaCodec::TopK:
      return MUSTER_CUDA_CHECK(launchCodeLargest(call, coding.largest, stream));
  }
}

}  // namespace muster::cuda
