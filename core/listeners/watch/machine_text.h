#pragma once

#include <string>

namespace muster {

/// The maker's name of the processor, as Linux has it; "a processor without a name" if it has none.
std::string processorName();

/// This machine as a report shows it, a line for the processor with its cores, one for the memory, one for
/// each GPU that can be used:
///
///     AMD EPYC 9R14, 2 cores, AVX-512
///     7.81 GB of memory
///
/// Cores and memory are those that this process may use (affinity, control group).
std::string machineText();

}  // namespace muster
