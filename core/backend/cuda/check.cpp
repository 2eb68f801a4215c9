#include "muster/core/backend/cuda/check.h"

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"

namespace muster::cuda {
namespace {

std::string placed(std::string_view problem, const char* call, const std::source_location& where) {
  std::string_view file = where.file_name();
  if (const auto root = file.rfind("core/"); root != std::string_view::npos) file.remove_prefix(root);
  return fmt::format("CUDA: {}, in {} ({}:{})", problem, call, file, where.line());
}

void forget(cudaError_t error) {
  // CUDA keeps the error of a failed call. Clear it, or a later `cudaGetLastError` reports it.
  if (meaningOf(error) != Meaning::FailedForGood) static_cast<void>(cudaGetLastError());
}

std::string textOf(cublasStatus_t status) {
  return fmt::format("cuBLASLt says {} ({})", static_cast<int>(status),
                     blas().cublasLtGetStatusString(status));
}
std::string textOf(cudnnStatus_t status) {
  return fmt::format("cuDNN says {} ({})", static_cast<int>(status), dnn().cudnnGetErrorString(status));
}

/// Runs a check and logs what it throws.
template <typename Status>
void logged(Status status, const char* call) noexcept {
  try {
    check(status, call);
  } catch (const std::exception& error) {
    logWarning("{}", error.what());
  } catch (...) {
  }
}

}  // namespace

Meaning meaningOf(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return Meaning::OutOfMemory;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorCallRequiresNewerDriver:
    case cudaErrorStubLibrary:
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceNotLicensed:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorInitializationError:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidKernelImage:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorJitCompilerNotFound:
      return Meaning::Unavailable;
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorLaunchFailure:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContextIsDestroyed:
    case cudaErrorUnknown:
      return Meaning::FailedForGood;
    default:
      return Meaning::Failed;
  }
}

void check(cudaError_t error, const char* call, std::source_location where) {
  if (error == cudaSuccess) [[likely]]
    return;
  forget(error);
  const std::string text = placed(cudaGetErrorString(error), call, where);
  switch (meaningOf(error)) {
    case Meaning::OutOfMemory:
      throw OutOfMemory(text);
    case Meaning::Unavailable:
      throw DeviceUnavailable(text);
    case Meaning::Failed:
      throw DeviceFailure(text);
    case Meaning::FailedForGood:
      throw DeviceFailure(text + "; this process cannot use the device any more");
  }
}

void check(cublasStatus_t status, const char* call, std::source_location where) {
  if (status == CUBLAS_STATUS_SUCCESS) [[likely]]
    return;
  const std::string text = placed(textOf(status), call, where);
  if (status == CUBLAS_STATUS_ALLOC_FAILED) throw OutOfMemory(text);
  if (status == CUBLAS_STATUS_ARCH_MISMATCH || status == CUBLAS_STATUS_LICENSE_ERROR)
    throw DeviceUnavailable(text);
  throw DeviceFailure(text);
}

void check(cudnnStatus_t status, const char* call, std::source_location where) {
  if (status == CUDNN_STATUS_SUCCESS) [[likely]]
    return;
  const std::string text = placed(textOf(status), call, where);
  if (status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
      status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED)
    throw OutOfMemory(text);
  if (status == CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH ||
      status == CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER)
    throw DeviceUnavailable(text);
  throw DeviceFailure(text);
}

void checkQuietly(cudaError_t error, const char* call) noexcept {
  logged(error, call);
}
void checkQuietly(cublasStatus_t status, const char* call) noexcept {
  logged(status, call);
}
void checkQuietly(cudnnStatus_t status, const char* call) noexcept {
  logged(status, call);
}

std::string whyNoDevice(cudaError_t error, int driver, int runtime) {
  if (error == cudaSuccess || error == cudaErrorNoDevice) return "this machine has no visible GPU";
  if (error == cudaErrorInsufficientDriver && driver == 0)
    return "this machine has no driver for NVIDIA's GPUs";
  const auto version = [](int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); };
  return fmt::format("no GPU can be used on this machine ({}; its driver is for CUDA {}, this build for {})",
                     cudaGetErrorString(error), version(driver), version(runtime));
}

std::string outOfMemoryText(std::string_view device, std::size_t asked, std::size_t free, std::size_t total) {
  return fmt::format("out of memory on {}: {} bytes were asked for, {} of {} are free", device, asked, free,
                     total);
}

}  // namespace muster::cuda
