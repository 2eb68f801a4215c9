#include "muster/core/backend/cuda/owners.h"

#include <cuda.h>

namespace muster::cuda {
namespace {

// Finds a function of the driver, which is not linked: the runtime cannot query whether a device is in use.
template <typename Function>
Function* driverFunction(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found);
#else
  const cudaError_t error = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
  if (error == cudaSuccess && found == cudaDriverEntryPointSuccess)
    return reinterpret_cast<Function*>(function);
  static_cast<void>(cudaGetLastError());
  return nullptr;
}

}  // namespace

bool inUse(int device) {
  static auto* const handleOf = driverFunction<CUresult(CUdevice*, int)>("cuDeviceGet");
  static auto* const stateOf =
      driverFunction<CUresult(CUdevice, unsigned*, int*)>("cuDevicePrimaryCtxGetState");
  if (!handleOf || !stateOf) return true;
  CUdevice handle = 0;
  unsigned flags = 0;
  int active = 0;
  // If the query fails, return true: the caller then restores the device, and CUDA reports the error.
  return handleOf(&handle, device) != CUDA_SUCCESS || stateOf(handle, &flags, &active) != CUDA_SUCCESS ||
         active != 0;
}

}  // namespace muster::cuda
