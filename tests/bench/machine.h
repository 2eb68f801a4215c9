#pragma once

namespace muster::bench {

/// A machine's peak rates, for comparison with training.
struct MachineRate {
  double operationsPerSecond = 0;  ///< float32 multiplications and additions, by fused instructions
  double copyBytesPerSecond = 0;   ///< of a copy larger than the caches: bytes read and bytes written
  /// The same by processor time, which other programs disturb less.
  double operationsPerProcessorSecond = 0, copyBytesPerProcessorSecond = 0;
};

/// Measures `threads` threads, each pinned to its own core, for about `seconds` in total. The instruction set
/// is the one that the kernels use: MUSTER_MAX_CPU_ISA limits it.
/// @throws std::invalid_argument if there are fewer cores than threads.
MachineRate measureMachine(int threads, double seconds);

}  // namespace muster::bench
