#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "examples/muster/run_data.h"
#include "examples/muster/run_file.h"
#include "examples/support/device_option.h"
#include "muster/core/io/model_file.h"
#include "muster/core/nn/network.h"
#include "muster/parallel/parallel_wrapper.h"

namespace program {

/// Where a run computes. @throws InvalidArgument naming a module that this program was built without;
/// DeviceUnavailable.
example::DeviceChoice devicesOf(const RunTraining& training);
muster::Nodes nodesOf(const RunTraining& training);

/// The network of a run file, with its first weights or those of `training.initialModel`; its open shapes are
/// those of the data. @throws InvalidArgument for data that do not fit, naming both; FileError.
std::unique_ptr<muster::Network> makeNetwork(const RunFile& run, LoadedData& data);

/// A wrapper as the run file says. @param network  must outlive it.
muster::ParallelWrapper makeWrapper(const RunFile& run, const example::DeviceChoice& devices,
                                    const muster::Nodes& nodes, muster::Network& network,
                                    const muster::Listeners& listeners);

/// The run in the notes of each file that `muster train` writes.
muster::ModelNotes notesOf(const RunFile& run);

/// The file that `training.resume` means: itself, or of a directory the newest checkpoint that is whole; ""
/// if there is none. @throws FileError for a file that was not written by `muster train`, or by a run whose
/// bits are others, naming the fields that differ.
std::filesystem::path fileToResume(const RunFile& run);

}  // namespace program
