#include "muster/core/tensor/device_copies.h"

#include "muster/core/backend/cuda/owners.h"

namespace muster::cuda {
namespace {

bool reaches(Device from, Device to) {
  int can = 0;
  MUSTER_CUDA_CHECK(cudaDeviceCanAccessPeer(&can, from.index(), to.index()));
  return can != 0;
}

}  // namespace

Links linksBetween(std::span<const Device> devices) {
  Links links{.whyNoNccl = whyNoNccl(), .peers = true};
  for (const Device from : devices)
    for (const Device to : devices)
      if (from != to && !reaches(from, to)) links.peers = false;
  return links;
}

void enablePeers(std::span<Context* const> contexts) {
  for (const Context* from : contexts)
    for (const Context* to : contexts) {
      if (from->device() == to->device()) continue;
      const DeviceGuard guard(from->device().index());
      const cudaError_t error = cudaDeviceEnablePeerAccess(to->device().index(), 0);
      if (error == cudaErrorPeerAccessAlreadyEnabled)
        static_cast<void>(cudaGetLastError());  // access was enabled earlier: clear the error
      else
        check(error, "cudaDeviceEnablePeerAccess(to->device().index(), 0)");
    }
}

}  // namespace muster::cuda
