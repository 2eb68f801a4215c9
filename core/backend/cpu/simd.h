#pragma once

namespace muster::cpu {

/// Instruction sets that kernels are compiled for, narrowest first.
enum class InstructionSet { Baseline, Avx2, Avx512 };

/// The widest instruction set of this machine, or less if MUSTER_MAX_CPU_ISA is "baseline", "avx2" or
/// "avx512". Decided once a process, so rounding does not change within a run.
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

/// Calls `kernel(args...)`, compiled for this machine's instruction set. The kernel and all that it calls in
/// a loop must be [[gnu::always_inline]]; otherwise baseline code is called. Arguments are copied, so that
/// the compiler sees that the kernel's writes cannot change them.
///
/// Not target_clones, whose resolvers run before a sanitizer is ready.
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

/// Written before a loop: no iteration reads what another one writes, so the compiler vectorises it without
/// checking whether the arrays overlap.
#if defined(__clang__)
#define MUSTER_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define MUSTER_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif
