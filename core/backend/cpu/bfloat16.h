#pragma once

#include "muster/core/device/detail/cpu.h"

namespace muster::cpu {

/// Whether oneDNN multiplies matrices of bf16 with AMX in this process. The first call asks the kernel for
/// it.
bool hasAmx();

}  // namespace muster::cpu
