#pragma once

#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <source_location>
#include <tuple>
#include <vector>

#include "muster/core/backend/cpu/code_room.h"
#include "muster/core/backend/cpu/state.h"
#include "muster/core/base/detail/vendor_call.h"
#include "muster/core/tensor/tensor.h"

namespace muster::cpu {

/// @throws DeviceFailure (OutOfMemory) with the called function and location unless `status` is success.
void check(dnnl_status_t status, const char* call, std::source_location where);

/// Runs a call of oneDNN, marks it as the vendor's, and checks its status. Use it for every such call.
template <typename F>
void runVendor(F f, const char* call, std::source_location where = std::source_location::current()) {
  dnnl_status_t status;
  {
    muster::detail::VendorCall scope;
    status = f();
  }
  check(status, call, where);
}

#define MUSTER_DNNL_CHECK(call) ::muster::cpu::runVendor([&] { return (call); }, #call)

/// Lets one thread plan at a time: workers plan the same shapes at the same moment, and later threads then
/// find the first thread's code in oneDNN's cache.
inline std::mutex& planningMutex() {
  static std::mutex mutex;
  return mutex;
}

/// Calls planning code and turns dnnl::error into DeviceFailure with `what`.
/// @throws OutOfMemory, also before the call if there is little memory left; see `requireCodeRoom`.
template <typename F>
auto planVendor(const char* what, F f, std::source_location where = std::source_location::current()) {
  const std::scoped_lock lock(planningMutex());
  requireCodeRoom(kPlanCodeBytes);
  try {
    const muster::detail::VendorCall vendor;
    return f();
  } catch (const dnnl::error& error) {
    check(error.status, what, where);
    throw;
  }
}

/// oneDNN's descriptor of an activation [N, C, H, W] in one of our layouts except SampleBlocks.
dnnl::memory::desc activationDesc(const Shape& shape, Layout layout,
                                  dnnl::memory::data_type type = dnnl::memory::data_type::f32);

/// The type to which a context's products round their factors.
inline dnnl::memory::data_type factorType(Context& context) {
  return context.mathMode() == MathMode::BFloat16 ? dnnl::memory::data_type::bf16
                                                  : dnnl::memory::data_type::f32;
}

/// Attributes of all primitives: we provide the scratch memory.
dnnl::primitive_attr attributes();

/// Describes a primitive. oneDNN 3 takes all arguments in one call, oneDNN 2 in a separate descriptor.
/// @param hint  the forward pass, for a backward pass.
template <typename Primitive, typename... Hint, typename... Arguments>
auto describe(const dnnl::engine& engine, const std::tuple<Hint...>& hint, const Arguments&... arguments) {
  const auto make = [&](const auto&... forward) {
#if DNNL_VERSION_MAJOR >= 3
    return typename Primitive::primitive_desc(engine, arguments..., forward..., attributes());
#else
    return typename Primitive::primitive_desc(typename Primitive::desc(arguments...), attributes(), engine,
                                              forward...);
#endif
  };
  return std::apply(make, hint);
}

/// A primitive with its arguments, created when planning. In a run, our code allocates nothing.
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
