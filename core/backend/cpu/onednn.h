#pragma once

#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <source_location>
#include <vector>

#include "muster/core/backend/cpu/state.h"
#include "muster/core/base/detail/vendor_call.h"
#include "muster/core/tensor/tensor.h"

namespace muster::cpu {

/// @throws DeviceFailure (OutOfMemory) with the called function and location unless `status` is success.
void check(dnnl_status_t status, const char* call, std::source_location where);

/// Every call that runs oneDNN goes through here: marked as the vendor's, and checked.
template <typename F>
void runVendor(F f, const char* call, std::source_location where = std::source_location::current()) {
  dnnl_status_t status;
  {
    detail::VendorCall scope;
    status = f();
  }
  check(status, call, where);
}

#define MUSTER_DNNL_CHECK(call) ::muster::cpu::runVendor([&] { return (call); }, #call)

/// One thread plans at a time: workers plan the same shapes at the same moment, and the second thread then
/// finds the first's code in oneDNN's cache.
inline std::mutex& planningMutex() {
  static std::mutex mutex;
  return mutex;
}

/// Calls planning code and turns dnnl::error into DeviceFailure with `what`.
template <typename F>
auto planVendor(const char* what, F f, std::source_location where = std::source_location::current()) {
  const std::scoped_lock lock(planningMutex());
  try {
    return f();
  } catch (const dnnl::error& error) {
    check(error.status, what, where);
    throw;
  }
}

/// oneDNN's descriptor of an activation [N, C, H, W] in one of our layouts except SampleBlocks.
dnnl::memory::desc activationDesc(const Shape& shape, Layout layout);

/// A primitive with its arguments, created when planning. A run allocates nothing of ours.
class Execution {
 public:
  Execution(dnnl::primitive primitive, const State& state)
      : primitive_(std::move(primitive)), stream_(state.stream) {}

  /// Adds an argument (DNNL_ARG_SRC, ...); returns its slot. `data` binds memory permanently; otherwise it is
  /// bound later.
  std::size_t add(int argument, const dnnl::memory::desc& desc, void* data = nullptr);
  void bind(std::size_t slot, void* data);
  /// All slots must be bound. @throws DeviceFailure.
  void run();

 private:
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::vector<dnnl::memory> memories_;      // [slot]
  std::vector<void*> bound_;                // [slot]
  std::vector<dnnl_exec_arg_t> arguments_;  // [slot]
};

}  // namespace muster::cpu
