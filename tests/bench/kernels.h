#pragma once

#include <boost/json.hpp>
#include <vector>

#include "tests/bench/arms.h"

namespace muster::bench {

/// Adds what a Google Benchmark program measured of each kernel, one result a repetition: "callsPerSecond"
/// and "ofMachine", the share of the machine's peak (of kernels that count FLOP/s, whose "limit" is "peak")
/// or of its copies (of those that count bytes, "copy"). Of other kernels "ofMachine" is calls over the peak,
/// only good for comparisons.
///
/// @param kernels  gets an arm for each kernel that it has not yet; one that was skipped says why in
/// `failure`.
/// @param output   the program's JSON.
/// @param machine  the fields of MachineRate, measured just before; kernels that Google Benchmark measures by
///        processor time are compared with the rates by processor time.
void addKernels(std::vector<Arm>& kernels, const boost::json::object& output,
                const boost::json::object& machine);

/// Prints time and share of each kernel, medians.
void printKernels(const std::vector<Arm>& kernels);

}  // namespace muster::bench
