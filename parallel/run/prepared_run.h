#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "muster/core/device/device.h"
#include "muster/core/nn/network.h"
#include "muster/datasets/source/load_data.h"
#include "muster/parallel/nodes.h"
#include "muster/parallel/run/run_file.h"

namespace muster {

/// The devices of a run.
struct RunDevices {
  std::vector<Device> devices = {Device::cpu()};  ///< worker i computes on device i mod D of these
  /// With `training.devices` auto: which GPU is used and how to choose the CPU, or why no GPU is used. "" if
  /// no notice is needed.
  std::string notice = {};
  bool unasked = false;  ///< they are GPUs that the run file does not name
};

/// What a run resumes.
struct ResumedRun {
  std::filesystem::path file = {};  ///< "": the training begins
  /// The fields that differ from the saved run's and may, for example "training.workers 2 (now 4)"; "" if
  /// none differ. They change the bits, but not what is trained.
  std::string changes = {};
  std::int64_t batches = 0;  ///< trained in the epoch in progress
};

/// A run that is checked, with its data and its network; nothing is trained or written yet.
struct PreparedRun {
  RunFile run;  ///< with the kind of nodes, and the data that stand in for MNIST, chosen
  RunDevices devices = {};
  Nodes nodes = {};
  int nodeCount = 1;  ///< of elastic nodes the least number
  ResumedRun resumed = {};
  LoadedData data = {};
  std::unique_ptr<Network> network = {};  ///< with the state of the file that it resumes
  /// Why its scores may say too little of new examples: it tests with training examples, or begins with a
  /// model that was trained with some of those that are held out now, or classes have no example that is held
  /// out. And that listeners look at the loss
  /// without the weights of the classes.
  std::vector<std::string> warnings = {};

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
