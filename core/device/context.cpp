#include "muster/core/device/context.h"

#include <omp.h>

#include "muster/core/base/error.h"

namespace muster {
namespace {

ContextOptions checked(ContextOptions options) {
  require(options.threads >= 1, "context: expected at least 1 thread, got {}", options.threads);
  return options;
}

std::unique_ptr<detail::BackendState> makeState(Device device) {
  if (device.isCpu()) return cpu::makeState();
  throw DeviceUnavailable(
      fmt::format("context: {} is not to be had, this build has no CUDA", device.toString()));
}

}  // namespace

Context::Context(Device device, ContextOptions options)
    : device_(device),
      options_(checked(std::move(options))),
      pin_(options_.cores, options_.threads),
      backend_(makeState(device)) {}

Context::~Context() = default;

void Context::synchronize() {}

ContextScope::ContextScope(Context& context) : threadsBefore_(omp_get_max_threads()) {
  omp_set_num_threads(context.threads());
}

ContextScope::~ContextScope() {
  omp_set_num_threads(threadsBefore_);
}

}  // namespace muster
