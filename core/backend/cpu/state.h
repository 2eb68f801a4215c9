#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include "muster/core/device/context.h"

namespace muster::cpu {

/// What a context keeps for the CPU backend.
struct State : detail::BackendState {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

/// Of a context on the CPU.
inline State& stateOf(Context& context) {
  return static_cast<State&>(context.backend());
}

}  // namespace muster::cpu
