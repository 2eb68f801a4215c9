#pragma once

#include <source_location>
#include <string>
#include <string_view>

#include "muster/core/backend/cuda/vendor.h"

namespace muster::cuda {

/// What an error of CUDA's runtime means to a caller, and which exception it becomes.
enum class Meaning {
  OutOfMemory,
  Unavailable,   ///< there is no such device, driver or code for it: DeviceUnavailable
  Failed,        ///< this call failed: DeviceFailure
  FailedForGood  ///< the process cannot use the device any more, every later call says so: DeviceFailure
};
Meaning meaningOf(cudaError_t error);

/// Throw what `meaningOf` says unless the call succeeded, with the call's text and place. Those of libraries
/// become OutOfMemory, DeviceUnavailable (no kernel for this device) or DeviceFailure.
void check(cudaError_t error, const char* call, std::source_location where = std::source_location::current());
void check(cublasStatus_t status, const char* call,
           std::source_location where = std::source_location::current());
void check(cudnnStatus_t status, const char* call,
           std::source_location where = std::source_location::current());

/// For destructors: logs instead.
void checkQuietly(cudaError_t error, const char* call) noexcept;
void checkQuietly(cublasStatus_t status, const char* call) noexcept;
void checkQuietly(cudnnStatus_t status, const char* call) noexcept;

/// Why this machine has no GPU to use, where counting them gave `error`, or success and none.
/// @param driver, runtime  as CUDA numbers versions, 13000 for 13.0; a driver of 0: there is none.
std::string whyNoDevice(cudaError_t error, int driver, int runtime);

/// As in `out of memory on cuda:0: 4096 bytes were asked for, 512 of 1024 are free`.
std::string outOfMemoryText(std::string_view device, std::size_t asked, std::size_t free, std::size_t total);

}  // namespace muster::cuda

#define MUSTER_CUDA_CHECK(call) ::muster::cuda::check((call), #call)
#define MUSTER_CUDA_LOG(call) ::muster::cuda::checkQuietly((call), #call)
