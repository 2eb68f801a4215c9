#pragma once

#include "examples/muster/run_file.h"
#include "examples/support/training_options.h"

namespace program {

/// The run file of a program's training: its data, workers, strategy, devices and curves. The program adds
/// the network, batch, epochs and seed, and what else it has options for.
RunFile runOf(const example::WorkerOptions& options, const example::DataChoice& choice,
              const example::DataSets& data, const muster::ParallelWrapper& wrapper);

}  // namespace program
