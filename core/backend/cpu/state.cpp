#include "muster/core/backend/cpu/state.h"

#include "muster/core/backend/cpu/code_room.h"
#include "muster/core/base/detail/vendor_call.h"
#include "muster/core/base/error.h"
#include "muster/core/device/detail/cpu.h"

namespace muster::cpu {

std::unique_ptr<detail::BackendState> makeState() {
  std::unique_ptr<State> state;
  try {
    const muster::detail::VendorCall vendor;
    state = std::make_unique<State>();
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory)
      throw OutOfMemory(fmt::format("oneDNN has no memory: {}", error.message));
    throw DeviceFailure(fmt::format("oneDNN cannot be used on this machine: {}", error.message));
  }
  generateProducts();
  return state;
}

void multiplyIn(MathMode mode, muster::detail::BackendState& state) {
  static_cast<State&>(state).mode = mode;
}

}  // namespace muster::cpu
