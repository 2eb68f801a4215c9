#pragma once

#include <memory>
#include <type_traits>

#include "muster/core/backend/cuda/check.h"

// Move-only owners of vendor objects. Creation throws on failure, destruction logs. Before destroying an
// owner, select its device (`DeviceGuard`).

namespace muster::cuda {

/// Whether this process has used the device. Selecting an unused device would create a CUDA context, which
/// takes hundreds of megabytes of the device's memory.
bool inUse(int device);

/// Selects a device for the calling thread; the destructor restores the previous one if it is in use. (CUDA
/// reports the first device for a thread that has never selected one.)
class DeviceGuard {
 public:
  explicit DeviceGuard(int device) {
    MUSTER_CUDA_CHECK(cudaGetDevice(&before_));
    if (device == before_) return;
    MUSTER_CUDA_CHECK(cudaSetDevice(device));
    changed_ = true;
  }
  ~DeviceGuard() {
    if (changed_ && inUse(before_)) MUSTER_CUDA_LOG(cudaSetDevice(before_));
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

/// Owns a handle; `Deleter` frees it.
template <typename Handle, typename Deleter>
using Owner = std::unique_ptr<std::remove_pointer_t<Handle>, Deleter>;

#define MUSTER_DELETER(Name, Handle, call)                                   \
  struct Name {                                                              \
    void operator()(Handle handle) const noexcept { MUSTER_CUDA_LOG(call); } \
  }

MUSTER_DELETER(FreeStream, cudaStream_t, cudaStreamDestroy(handle));
MUSTER_DELETER(FreeEvent, cudaEvent_t, cudaEventDestroy(handle));
MUSTER_DELETER(FreeGraph, cudaGraph_t, cudaGraphDestroy(handle));
MUSTER_DELETER(FreeGraphExec, cudaGraphExec_t, cudaGraphExecDestroy(handle));
MUSTER_DELETER(FreeBlas, cublasLtHandle_t, blas().cublasLtDestroy(handle));
MUSTER_DELETER(FreeMatmul, cublasLtMatmulDesc_t, blas().cublasLtMatmulDescDestroy(handle));
MUSTER_DELETER(FreeMatrix, cublasLtMatrixLayout_t, blas().cublasLtMatrixLayoutDestroy(handle));
MUSTER_DELETER(FreePreference, cublasLtMatmulPreference_t, blas().cublasLtMatmulPreferenceDestroy(handle));
MUSTER_DELETER(FreeDnn, cudnnHandle_t, dnn().cudnnDestroy(handle));
MUSTER_DELETER(FreeTensor, cudnnTensorDescriptor_t, dnn().cudnnDestroyTensorDescriptor(handle));
MUSTER_DELETER(FreeFilter, cudnnFilterDescriptor_t, dnn().cudnnDestroyFilterDescriptor(handle));
MUSTER_DELETER(FreeConvolution, cudnnConvolutionDescriptor_t,
               dnn().cudnnDestroyConvolutionDescriptor(handle));

#undef MUSTER_DELETER

using StreamOwner = Owner<cudaStream_t, FreeStream>;
using EventOwner = Owner<cudaEvent_t, FreeEvent>;
using GraphOwner = Owner<cudaGraph_t, FreeGraph>;
using GraphExecOwner = Owner<cudaGraphExec_t, FreeGraphExec>;
using BlasOwner = Owner<cublasLtHandle_t, FreeBlas>;
using MatmulOwner = Owner<cublasLtMatmulDesc_t, FreeMatmul>;
using MatrixOwner = Owner<cublasLtMatrixLayout_t, FreeMatrix>;
using PreferenceOwner = Owner<cublasLtMatmulPreference_t, FreePreference>;
using DnnOwner = Owner<cudnnHandle_t, FreeDnn>;
using TensorOwner = Owner<cudnnTensorDescriptor_t, FreeTensor>;
using FilterOwner = Owner<cudnnFilterDescriptor_t, FreeFilter>;
using ConvolutionOwner = Owner<cudnnConvolutionDescriptor_t, FreeConvolution>;

/// Returns the handle that `create` writes: `make<EventOwner>([](auto* e) { MUSTER_CUDA_CHECK(...(e)); })`.
template <typename OwnerType, typename Create>
OwnerType make(Create create) {
  typename OwnerType::pointer handle = nullptr;
  create(&handle);
  return OwnerType(handle);
}

}  // namespace muster::cuda
