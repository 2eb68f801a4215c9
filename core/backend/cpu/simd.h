#pragma once

namespace muster::cpu {

/// Instruction sets that kernels are compiled for, narrowest first.
enum class InstructionSet { Baseline, Avx2, Avx512 };

/// The widest instruction set of this machine, limited by MUSTER_MAX_CPU_ISA ("baseline", "avx2", "avx512").
/// Decided once per process, so rounding does not change within a run.
InstructionSet instructionSet();

namespace detail {
#if defined(__x86_64__)
template <auto kernel, typename... Args>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,fma")]] auto onAvx512(Args... args) {
  return kernel(args...);
}
template <auto kernel, typename... Args>
[[gnu::target("avx2,fma")]] auto onAvx2(Args... args) {
  return kernel(args...);
}
#endif
}  // namespace detail

/// Calls `kernel(args...)`, compiled for this machine's instruction set. The kernel and the functions that
/// its loops call must be [[gnu::always_inline]]; otherwise baseline code is called. Arguments are copied, so
/// the compiler knows that the kernel's writes cannot change them.
///
/// target_clones is not an alternative: its resolvers run before sanitizers are ready.
template <auto kernel, typename... Args>
auto dispatch(Args... args) {
#if defined(__x86_64__)
  switch (instructionSet()) {
    case InstructionSet::Avx512:
      return detail::onAvx512<kernel>(args...);
    case InstructionSet::Avx2:
      return detail::onAvx2<kernel>(args...);
    case InstructionSet::Baseline:
      break;
  }
#endif
  return kernel(args...);
}

}  // namespace muster::cpu

/// Put this before a loop in which no iteration reads what another one writes: the compiler then vectorises
/// the loop without checking whether the arrays overlap.
#if defined(__clang__)
#define MUSTER_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define MUSTER_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif
