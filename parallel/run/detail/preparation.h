#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "muster/core/io/model_file.h"
#include "muster/parallel/parallel_wrapper.h"
#include "muster/parallel/run/detail/node_options.h"
#include "muster/parallel/run/prepared_run.h"

namespace muster::detail {

/// As muster::prepareRun.
/// @param nodes  by which other nodes are found.
/// @param beforeData  is called before the data are read, for checks that need nodes and `resumed` alone.
PreparedRun prepareRun(RunFile run, const NodeOptions& nodes,
                       const std::function<void(const PreparedRun&)>& beforeData = {});

/// For `prepareRun`: the checks of the first node that its checkpoints do not mix with those of another
/// training. @throws FileError as requireNoOtherTraining and requireOwnCheckpoints.
void requireOwnDirectory(const PreparedRun& prepared);

/// The devices of a run. @throws DeviceUnavailable.
RunDevices devicesOf(const RunTraining& training);

/// Chooses the kind of nodes that `training.nodes: auto` is: elastic with a least number of nodes, gloo with
/// a store, mpi if a launcher started several processes, else none.
/// @throws InvalidArgument for a field that the kind excludes, or too many workers.
void chooseNodes(RunFile& run, const NodeOptions& options);

/// Connects the nodes of a run after `chooseNodes`. @throws InvalidArgument naming what is missing for it, or
/// a module that this program was built without.
Nodes nodesOf(const RunTraining& training, NodeOptions options);

/// The input description of the file that a training resumes or, with rows of tables, begins with; empty if
/// there is none.
InputDescription knownBy(const RunFile& run, const std::filesystem::path& resumed);

/// Checks before a training that its files have room. @throws FileError.
void requireDiskRoom(const RunFile& run, Network& network);

/// The learning rate's field and value, for the message of a diverged training.
std::string learningRateOf(const RunFile& run);

/// The wrapper that the run file describes. @param network  must outlive it.
/// @param elastic  how many elastic nodes there are at least.
ParallelWrapper makeWrapper(const RunFile& run, const RunDevices& devices, const Nodes& nodes,
                            Network& network, const Listeners& listeners, int elastic = 1);

/// Why a run's replicas are merged less often than its strategy says: an epoch is shorter than the period. ""
/// if they are not. @param batches  of an epoch.  @param nodes  that train.
std::string periodRemark(const RunFile& run, std::int64_t batches, int nodes = 1);

/// Loads the saved network and compares its outputs for a batch with the original's, bit for bit.
/// @return a text that they are equal. @throws FileError if the file cannot be read, or the outputs differ.
std::string checkSaved(Network& network, const std::filesystem::path& path, LoadedData& data);

}  // namespace muster::detail
