#include "muster/core/nn/step_memory.h"

#include "muster/core/device/detail/buffer_bytes.h"
#include "muster/core/nn/compile/network_probe.h"
#include "muster/core/nn/compile/network_program.h"
#include "muster/core/nn/network.h"
#include "muster/core/nn/step/network_impl.h"

namespace muster {

std::optional<std::int64_t> stepBytes(Model& model, std::int64_t examples, bool training,
                                      const ContextOptions& options) {
  auto* const network = dynamic_cast<Network*>(&model);
  if (network == nullptr || !network->initialized() || !model.context().device().isCpu()) return {};
  Context context(Device::cpu(), {.threads = options.threads, .mathMode = options.mathMode});
  ContextScope scope(context);
  const auto before = detail::cpuBytesOfThread();
  const detail::NetworkProgram program(detail::NetworkProbe::of(*network).plan, examples, training, context);
  return detail::cpuBytesOfThread() - before;
}

}  // namespace muster
