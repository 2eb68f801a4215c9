#include "muster/core/backend/cuda/kernels/channel_sums.h"

#include "muster/core/backend/cuda/kernels/channel_sums.cuh"

namespace muster::cuda {

cudaError_t launchChannelSums(const ChannelShape& shape, const float* x, float* out,
                              const PartialSums& partial, cudaStream_t stream) {
  return sumChannels<1>(
      shape, partial, stream,
      [=] __device__(const ChannelValue& v, double(&term)[1]) { term[0] = x[v.place]; },
      [=] __device__(std::int64_t channel, const double(&sum)[1]) {
        out[channel] = static_cast<float>(sum[0]);
      });
}

}  // namespace muster::cuda
