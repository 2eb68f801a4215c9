#include "muster/core/backend/cuda/check.h"

#include "tests/support/test.h"

namespace muster::cuda {
namespace {

template <typename Error>
std::string textOf(cudaError_t error) {
  return test::thrown<Error>([&] { check(error, "cudaFoo(bar)"); });
}

TEST_CASE("a call that succeeded throws nothing") {
  CHECK_NOTHROW(check(cudaSuccess, "cudaFoo(bar)"));
  CHECK_NOTHROW(check(CUBLAS_STATUS_SUCCESS, "cublasFoo(bar)"));
  CHECK_NOTHROW(check(CUDNN_STATUS_SUCCESS, "cudnnFoo(bar)"));
}

TEST_CASE("errors of CUDA become exceptions with call text and location") {
  const auto memory = textOf<OutOfMemory>(cudaErrorMemoryAllocation);
  CHECK_CONTAINS(memory, "in cudaFoo(bar) (");
  CHECK_CONTAINS(memory, "check_test.cpp:");
  for (auto error :
       {cudaErrorNoDevice, cudaErrorDevicesUnavailable, cudaErrorInsufficientDriver, cudaErrorInvalidDevice,
        cudaErrorStubLibrary, cudaErrorNoKernelImageForDevice, cudaErrorInvalidKernelImage,
        cudaErrorCallRequiresNewerDriver, cudaErrorUnsupportedPtxVersion})
    CHECK_CONTAINS(textOf<DeviceUnavailable>(error), cudaGetErrorString(error));
  for (auto error :
       {cudaErrorInvalidValue, cudaErrorLaunchOutOfResources, cudaErrorStreamCaptureInvalidated}) {
    const auto text = textOf<DeviceFailure>(error);
    CHECK_CONTAINS(text, cudaGetErrorString(error));
    CHECK_LACKS(text, "any more");
  }
}

TEST_CASE("an error after which the device is lost says so") {
  for (auto error :
       {cudaErrorIllegalAddress, cudaErrorLaunchFailure, cudaErrorMisalignedAddress, cudaErrorAssert,
        cudaErrorECCUncorrectable, cudaErrorIllegalInstruction, cudaErrorContextIsDestroyed}) {
    CHECK(meaningOf(error) == Meaning::FailedForGood);
    CHECK_CONTAINS(textOf<DeviceFailure>(error), "this process cannot use the device any more");
  }
  CHECK(meaningOf(cudaErrorInvalidValue) == Meaning::Failed);
}

TEST_CASE("the reason for a missing GPU distinguishes no GPU, no driver and a driver that is too old") {
  CHECK(whyNoDevice(cudaSuccess, 13000, 13000) == "this machine has no visible GPU");
  CHECK(whyNoDevice(cudaErrorNoDevice, 13000, 13000) == "this machine has no visible GPU");
  CHECK(whyNoDevice(cudaErrorInsufficientDriver, 0, 13000) == "this machine has no driver for NVIDIA's GPUs");
  CHECK(whyNoDevice(cudaErrorInsufficientDriver, 12040, 13000) ==
        "no GPU can be used on this machine (CUDA driver version is insufficient for CUDA runtime version; "
        "its driver is for CUDA 12.4, this build for 13.0)");
  CHECK_CONTAINS(whyNoDevice(cudaErrorSystemDriverMismatch, 13010, 13000),
                 "for CUDA 13.1, this build for 13.0)");
}

TEST_CASE("an out-of-memory error names the requested and the free bytes") {
  CHECK(outOfMemoryText("cuda:1", 4096, 512, 1024) ==
        "out of memory on cuda:1: 4096 bytes were asked for, 512 of 1024 are free");
}

TEST_CASE("the libraries have every function of cuBLASLt and cuDNN that muster uses") {
  // Needs the libraries, but no GPU.
  try {
    const auto& matrices = blas();
    const auto& layers = dnn();
    CHECK((matrices.cublasLtMatmul != nullptr));
    CHECK((layers.cudnnConvolutionForward != nullptr));
    const auto fail = [](auto status) { return [status] { check(status, "foo(bar)"); }; };
    for (const auto& text :
         {test::thrown<DeviceFailure>(fail(CUBLAS_STATUS_INVALID_VALUE)),
          test::thrown<OutOfMemory>(fail(CUBLAS_STATUS_ALLOC_FAILED)),
          test::thrown<DeviceUnavailable>(fail(CUBLAS_STATUS_ARCH_MISMATCH)),
          test::thrown<DeviceFailure>(fail(CUDNN_STATUS_EXECUTION_FAILED)),
          test::thrown<OutOfMemory>(fail(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED)),
          test::thrown<DeviceUnavailable>(fail(CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH))})
      CHECK_CONTAINS(text, ", in foo(bar) (");
    CHECK_CONTAINS(test::thrown<DeviceFailure>(fail(CUBLAS_STATUS_INVALID_VALUE)), "cuBLASLt says 7 (");
  } catch (const DeviceUnavailable& error) {
    CHECK_CONTAINS(error.what(), "cannot be loaded");
  }
}

}  // namespace
}  // namespace muster::cuda
