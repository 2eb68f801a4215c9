#include "muster/core/backend/cpu/state.h"

#include "muster/core/base/error.h"
#include "muster/core/device/detail/cpu.h"

namespace muster::cpu {

std::unique_ptr<detail::BackendState> makeState() {
  try {
    return std::make_unique<State>();
  } catch (const dnnl::error& error) {
    throw DeviceFailure(fmt::format("oneDNN cannot be used on this machine: {}", error.message));
  }
}

void multiplyIn(MathMode mode, muster::detail::BackendState& state) {
  static_cast<State&>(state).mode = mode;
}

}  // namespace muster::cpu
