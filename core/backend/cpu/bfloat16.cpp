#include "muster/core/backend/cpu/bfloat16.h"

#include <cstdlib>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>

#include "muster/core/backend/cpu/simd.h"

namespace muster::cpu {
namespace {

/// oneDNN's instruction sets are bit sets. The processor must support them, the environment and, for AMX, the
/// kernel permit them.
bool oneDnnHas(dnnl_cpu_isa_t set) {
  return (dnnl_get_effective_cpu_isa() & set) == set;
}

bool processorHasBFloat16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

}  // namespace

bool hasAmx() {
  static const bool has = oneDnnHas(dnnl_cpu_isa_avx512_core_amx);
  return has;
}

std::string whyNoBFloat16() {
  if (!processorHasBFloat16()) return "the processor has neither AVX-512 BF16 nor AMX";
  if (instructionSet() != InstructionSet::Avx512)
    return "MUSTER_MAX_CPU_ISA excludes AVX-512 BF16 and AMX, which it needs";
  if (!oneDnnHas(dnnl_cpu_isa_avx512_core_bf16))
    return "ONEDNN_MAX_CPU_ISA excludes AVX-512 BF16 and AMX, which it needs";
  return {};
}

}  // namespace muster::cpu
