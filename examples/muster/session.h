#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "examples/muster/run_data.h"
#include "examples/muster/run_file.h"
#include "examples/support/checkpoints.h"
#include "examples/support/device_option.h"
#include "examples/support/nodes.h"
#include "muster/core/io/model_file.h"
#include "muster/core/nn/network.h"
#include "muster/parallel/parallel_wrapper.h"

namespace program {

/// The devices of a run. @throws DeviceUnavailable.
example::DeviceChoice devicesOf(const RunTraining& training);

/// Settles which kind of nodes `training.nodes: auto` is: elastic with --min-nodes, gloo with --store, mpi if
/// a launcher started several processes, else none.
/// @throws InvalidArgument for a field that the kind excludes, or too many workers.
void settleNodes(RunFile& run, const example::NodeOptions& options);

/// Connects the nodes of a settled run. @throws InvalidArgument naming what is missing for it, or a module
/// that this program was built without.
muster::Nodes nodesOf(const RunTraining& training, example::NodeOptions options);

/// Settles which data `mnistOrGenerated` is, as a model's file says what it was trained with; does nothing
/// for other data or another file.
void settleData(RunFile& run, const std::filesystem::path& model);

/// The input description of the file that a training resumes or, with rows of tables, begins with; empty if
/// there is none.
muster::InputDescription knownBy(const RunFile& run, const std::filesystem::path& resumed);

/// The network of a run file, with initial weights or those of `training.initialModel`; takes missing shapes
/// from the data. @throws InvalidArgument for data that do not fit, naming both; FileError.
std::unique_ptr<muster::Network> makeNetwork(const RunFile& run, LoadedData& data);

/// Checks before a training that its files have room. @throws FileError.
void requireRoom(const RunFile& run, muster::Network& network);

/// The wrapper that the run file describes. @param network  must outlive it.
/// @param elastic  how many elastic nodes there are at least.
muster::ParallelWrapper makeWrapper(const RunFile& run, const example::DeviceChoice& devices,
                                    const muster::Nodes& nodes, muster::Network& network,
                                    const muster::Listeners& listeners, int elastic = 1);

/// Loads the saved network and compares its outputs for a batch with the original's, bit for bit.
/// @return a text that they are equal. @throws FileError if the file cannot be read, or the outputs differ.
std::string checkSaved(muster::Network& network, const std::filesystem::path& path, LoadedData& data);

/// Number of batches already trained in the epoch in progress of a resumed network.
/// @throws FileError if its file has impossible numbers.
std::int64_t batchesTrained(muster::Network& network);

/// The run as notes of each model file that `muster train` writes.
muster::ModelNotes notesOf(const RunFile& run);

/// The files that a training reads and writes. @param resumed  the file from `resumedBy`.
example::Paths pathsOf(const std::filesystem::path& runFile, const RunFile& run,
                       const std::filesystem::path& resumed);

/// What `training.resume` and `listeners.checkpoints.directory` name.
example::CheckpointChoice checkpointsOf(const RunFile& run, int nodes = 1);

/// What a run resumes.
struct Resumed {
  std::filesystem::path file = {};  ///< "": the training begins
  /// The fields that differ from the saved run's and may, for example "training.workers 2 (now 4)"; "" if
  /// none differ. They change the bits, but not what is trained.
  std::string changes = {};
  std::int64_t batches = 0;  ///< trained in the epoch in progress, once the file is loaded
};

/// The file to which `training.resume` refers: itself, or the newest intact checkpoint of a directory.
/// Settles the run's data by it.
/// @throws FileError for a file that `muster train` did not write, or that belongs to a different run, naming
/// the fields that differ; otherwise as example::fileToResume.
Resumed resumedBy(RunFile& run, int nodes = 1);

}  // namespace program
