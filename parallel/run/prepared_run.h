#pragma once

#include <memory>

#include "muster/core/nn/network.h"
#include "muster/datasets/source/load_data.h"
#include "muster/parallel/nodes.h"
#include "muster/parallel/run/detail/resuming.h"
#include "muster/parallel/run/detail/run_devices.h"
#include "muster/parallel/run/run_file.h"

namespace muster {

/// A run that is checked, with its data and its network; nothing is trained or written yet.
struct PreparedRun {
  RunFile run;  ///< with the kind of nodes, and the data that stand in for MNIST, chosen
  detail::DeviceChoice devices = {};
  Nodes nodes = {};
  int nodeCount = 1;  ///< of elastic nodes the least number
  detail::Resumed resumed = {};
  LoadedData data = {};
  std::unique_ptr<Network> network = {};  ///< with the state of the file that it resumes

  /// Whether this node prints and writes files. Of elastic nodes this may change while they train.
  bool first() const { return nodes.node() == 0; }
  bool overNodes() const { return nodes.nodes() > 1 || nodes.elastic(); }
};

/// Connects the nodes, finds the file to resume, loads the data and makes the network, and refuses what the
/// training would refuse. Other nodes are found by MUSTER_STORE, MUSTER_NODE, MUSTER_NODES, MUSTER_MIN_NODES,
/// MUSTER_INTERFACE and MUSTER_SILENCE; without a store, they are the processes that mpirun started.
/// @throws InvalidArgument naming a field of the run file; FileError; DownloadError; DeviceUnavailable.
PreparedRun prepareRun(RunFile run);

}  // namespace muster
