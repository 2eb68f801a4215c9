#pragma once

#include <source_location>
#include <string>
#include <string_view>

#include "muster/core/backend/cuda/vendor.h"

namespace muster::cuda {

/// The meaning of a CUDA runtime error, and the exception that it becomes.
enum class Meaning {
  OutOfMemory,
  Unavailable,   ///< no such device, no driver or no code for it: DeviceUnavailable
  Failed,        ///< this call failed: DeviceFailure
  FailedForGood  ///< all later calls of the process also fail: DeviceFailure
};
Meaning meaningOf(cudaError_t error);

/// Throw the exception of `meaningOf` on failure, with call text and location. Errors of libraries become
/// OutOfMemory, DeviceUnavailable (no kernel for this device) or DeviceFailure.
void check(cudaError_t error, const char* call, std::source_location where = std::source_location::current());
void check(cublasStatus_t status, const char* call,
           std::source_location where = std::source_location::current());
void check(cudnnStatus_t status, const char* call,
           std::source_location where = std::source_location::current());

/// For destructors: logs instead of throwing.
void checkQuietly(cudaError_t error, const char* call) noexcept;
void checkQuietly(cublasStatus_t status, const char* call) noexcept;
void checkQuietly(cudnnStatus_t status, const char* call) noexcept;

/// Why this machine has no usable GPU, if counting them returned `error`, or success and 0.
/// @param driver, runtime  versions as CUDA numbers them, 13000 for 13.0; driver 0: no driver.
std::string whyNoDevice(cudaError_t error, int driver, int runtime);

/// For example `out of memory on cuda:0: 4096 bytes were asked for, 512 of 1024 are free`.
std::string outOfMemoryText(std::string_view device, std::size_t asked, std::size_t free, std::size_t total);

}  // namespace muster::cuda

#define MUSTER_CUDA_CHECK(call) ::muster::cuda::check((call), #call)
#define MUSTER_CUDA_LOG(call) ::muster::cuda::checkQuietly((call), #call)
