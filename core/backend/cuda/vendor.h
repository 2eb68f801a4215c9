#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <functional>
#include <string>

// Note [Libraries loaded at first use]
// cuBLASLt alone is half a gigabyte. Linked, it would cost every program 50 ms and 200 MB of mappings at its
// start, and programs could not run on machines without it, even on the CPU. So the libraries are opened when
// the first context on a GPU is created. Their functions are members of tables: `blas().cublasLtMatmul(...)`.

namespace muster::cuda {

#define MUSTER_CUBLASLT_FUNCTIONS(FUNCTION)      \
  FUNCTION(cublasLtCreate)                       \
  FUNCTION(cublasLtDestroy)                      \
  FUNCTION(cublasLtGetStatusString)              \
  FUNCTION(cublasLtMatmul)                       \
  FUNCTION(cublasLtMatmulAlgoGetHeuristic)       \
  FUNCTION(cublasLtMatmulDescCreate)             \
  FUNCTION(cublasLtMatmulDescDestroy)            \
  FUNCTION(cublasLtMatmulDescSetAttribute)       \
  FUNCTION(cublasLtMatmulPreferenceCreate)       \
  FUNCTION(cublasLtMatmulPreferenceDestroy)      \
  FUNCTION(cublasLtMatmulPreferenceSetAttribute) \
  FUNCTION(cublasLtMatrixLayoutCreate)           \
  FUNCTION(cublasLtMatrixLayoutDestroy)          \
  FUNCTION(cublasLtMatrixLayoutSetAttribute)

#define MUSTER_CUDNN_FUNCTIONS(FUNCTION)                       \
  FUNCTION(cudnnConvolutionBackwardData)                       \
  FUNCTION(cudnnConvolutionBackwardFilter)                     \
  FUNCTION(cudnnConvolutionForward)                            \
  FUNCTION(cudnnCreate)                                        \
  FUNCTION(cudnnCreateConvolutionDescriptor)                   \
  FUNCTION(cudnnCreateFilterDescriptor)                        \
  FUNCTION(cudnnCreateTensorDescriptor)                        \
  FUNCTION(cudnnDestroy)                                       \
  FUNCTION(cudnnDestroyConvolutionDescriptor)                  \
  FUNCTION(cudnnDestroyFilterDescriptor)                       \
  FUNCTION(cudnnDestroyTensorDescriptor)                       \
  FUNCTION(cudnnGetConvolutionBackwardDataAlgorithm_v7)        \
  FUNCTION(cudnnGetConvolutionBackwardDataAlgorithmMaxCount)   \
  FUNCTION(cudnnGetConvolutionBackwardDataWorkspaceSize)       \
  FUNCTION(cudnnGetConvolutionBackwardFilterAlgorithm_v7)      \
  FUNCTION(cudnnGetConvolutionBackwardFilterAlgorithmMaxCount) \
  FUNCTION(cudnnGetConvolutionBackwardFilterWorkspaceSize)     \
  FUNCTION(cudnnGetConvolutionForwardAlgorithm_v7)             \
  FUNCTION(cudnnGetConvolutionForwardAlgorithmMaxCount)        \
  FUNCTION(cudnnGetConvolutionForwardWorkspaceSize)            \
  FUNCTION(cudnnGetErrorString)                                \
  FUNCTION(cudnnSetConvolution2dDescriptor)                    \
  FUNCTION(cudnnSetConvolutionGroupCount)                      \
  FUNCTION(cudnnSetConvolutionMathType)                        \
  FUNCTION(cudnnSetFilter4dDescriptor)                         \
  FUNCTION(cudnnSetStream)                                     \
  FUNCTION(cudnnSetTensor4dDescriptor)

#define MUSTER_TABLE_MEMBER(function) decltype(&::function) function = nullptr;
struct BlasLibrary {
  MUSTER_CUBLASLT_FUNCTIONS(MUSTER_TABLE_MEMBER)
};
struct DnnLibrary {
  MUSTER_CUDNN_FUNCTIONS(MUSTER_TABLE_MEMBER)
};
#undef MUSTER_TABLE_MEMBER

/// Opens a library: from the loader's search path, else from its directory when muster was built, else from
/// the usual places.
/// @param whyNot  called for each opened file: returns what is wrong with it, or "" if it is the right one.
/// @throws DeviceUnavailable naming the library, and what was wrong with each file of that name.
void* openLibrary(const char* name, const char* builtBeside,
                  const std::function<std::string(void* library)>& whyNot = {});
/// A function of an open library. @throws DeviceUnavailable naming what is missing.
void* functionOf(void* library, const char* libraryName, const char* name);

/// Why a libcudnn.so.9 cannot be used; "" if it is for this build's CUDA, then the checked part stays open.
/// cuDNN has the same file name for every CUDA version, and a wrong one would search for another cuBLASLt.
std::string whyNotForOurCuda(void* library);

/// Opens the library at the first call, and never closes it.
/// @throws DeviceUnavailable naming the library and the places searched, the part of it that cannot be
///         opened, or the missing function.
const BlasLibrary& blas();
const DnnLibrary& dnn();

}  // namespace muster::cuda
