#include "muster/core/backend/cpu/simd.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "muster/core/base/log.h"
#include "muster/core/device/instructions.h"

namespace muster {

std::string_view vectorInstructions() {
  switch (cpu::instructionSet()) {
    case cpu::InstructionSet::Avx512:
      return "AVX-512";
    case cpu::InstructionSet::Avx2:
      return "AVX2";
    case cpu::InstructionSet::Baseline:
      break;
  }
  return "";
}

namespace cpu {
namespace {

InstructionSet widest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("fma"))
    return InstructionSet::Avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return InstructionSet::Avx2;
#endif
  return InstructionSet::Baseline;
}

InstructionSet allowed() {
  const char* text = std::getenv("MUSTER_MAX_CPU_ISA");
  if (!text) return InstructionSet::Avx512;
  const std::string_view name = text;
  if (name == "baseline") return InstructionSet::Baseline;
  if (name == "avx2") return InstructionSet::Avx2;
  if (name != "avx512")
    logWarning("MUSTER_MAX_CPU_ISA: \"{}\" is none of baseline, avx2, avx512; it is ignored", name);
  return InstructionSet::Avx512;
}

}  // namespace

InstructionSet instructionSet() {
  static const InstructionSet chosen = std::min(widest(), allowed());
  return chosen;
}

}  // namespace cpu
}  // namespace muster
