#pragma once

#include <optional>
#include <string>

#include "examples/support/command_line.h"
#include "muster/parallel/nodes.h"

namespace example {

/// How a program finds the other processes of its training: options, whose defaults are the variables
/// MUSTER_STORE, MUSTER_NODE, MUSTER_NODES, MUSTER_MIN_NODES, MUSTER_INTERFACE and MUSTER_SILENCE of the
/// environment. Without a store, those that mpirun has started.
struct NodeOptions {
  /// @throws muster::InvalidArgument for a variable that is not the number that it should be.
  NodeOptions();

  std::string store, interface;
  int node = 0, nodes = 1;
  std::optional<int> minNodes;  ///< of a training that processes join and leave; none: all are there
  double silence = 30;          ///< seconds

  /// Adds the options that go here.
  void describe(CommandLine& line);
  /// When they have been read. @throws muster::InvalidArgument naming an option without effect.
  void check(const CommandLine& line) const;
  /// How many processes there are, before they are connected; where they come and go, at least so many.
  int count() const;
  /// Waits for the others, unless they come and go: then `fit` does. @throws muster::InvalidArgument where
  /// this build has no Gloo, or is started by a launcher and has no MPI; as muster::Nodes.
  muster::Nodes connect() const;
};

// Each of the modules, or an error that says it is missing.

/// The processes that mpirun has started; one node without it.
muster::Nodes nodesByMpi();
muster::Nodes nodesByGloo(const muster::Nodes::Gloo& options);
muster::Nodes elasticNodes(const muster::Nodes::Elastic& options);

}  // namespace example
