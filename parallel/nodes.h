#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace muster {

class ElasticNodes;
class NodeLink;
class NodeTransport;

/// The processes (nodes) that train one model together, usually one on each machine, each with its own
/// workers. A value; copies share one connection, which ends with the last of them.
///
///     ParallelWrapper::Builder(model).workers(2).averagingFrequency(30).nodes(Nodes::mpi()).build();
///
/// Each of N nodes runs the same program with the same options, model and data. Worker l of node n is worker
/// l * N + n of the training, and trains only that worker's batches. The result has the same bits as that of
/// one process with N times the workers and `groups(N)`, for every transport. Nodes trust their network.
class Nodes {
 public:
  /// A node that sends nothing for this long counts as lost. Every node sends heartbeats, also over a slow
  /// link and during long steps.
  static constexpr std::chrono::milliseconds kSilence{30'000};

  /// One node, and no network.
  Nodes() = default;
  /// The processes that `mpirun` has started. Needs the library muster::nodes, which is built if MPI was
  /// found. The first call connects, and waits for the other nodes; the connection ends with the program,
  /// which ends when all nodes do. For programs that initialise MPI themselves see parallel/nodes.md.
  /// @param silence  of the first call. @throws NodeFailure if a node does not answer; InvalidArgument if MPI
  ///                 was initialised with less, or is finalised.
  static Nodes mpi(std::chrono::milliseconds silence = kSilence);
  /// Options of `gloo`: how nodes find each other without a launcher.
  struct Gloo {
    std::string store = {};      ///< shared by all nodes: a directory (created), or redis://host:port/name
    int node = 0;                ///< number of this node, from 0
    int nodes = 1;               ///< number of all nodes
    std::string interface = {};  ///< the only one to listen on, as in "eth0", or "lo" on one machine
    std::chrono::milliseconds silence = kSilence;
    std::chrono::milliseconds patience{120'000};  ///< how long to wait for all nodes
  };
  /// Processes that were started one by one, over TCP. Needs the library muster::gloo, which is built if
  /// Gloo was found. Waits for the other nodes. The connection ends with the last copy, when all nodes do.
  /// @throws InvalidArgument naming an option; NodeFailure if not all nodes come.
  static Nodes gloo(const Gloo& options);
  /// Options of `elastic`: how elastic nodes, which may join and leave, find each other. The user gives them
  /// no numbers.
  struct Elastic {
    std::string store = {};      ///< see Gloo
    int minNodes = 1;            ///< with fewer nodes the training waits
    std::string interface = {};  ///< see Gloo
    std::chrono::milliseconds silence = kSilence;
    std::chrono::milliseconds patience{120'000};  ///< how long it waits for `minNodes`
  };
  /// Processes that may join and leave while they train (parallel/nodes.md, "Elastic nodes"). If one is lost,
  /// the others continue from the last merge; `fit` fails if fewer than `minNodes` are left for `patience`.
  /// The bits depend only on the members of each round, which are logged. Needs the library muster::gloo, as
  /// `gloo` does.
  /// @throws InvalidArgument naming an option; NodeFailure if the store cannot be reached.
  static Nodes elastic(const Elastic& options);
  /// Connects by a transport of your own. @param make  is called on the thread that communicates.
  /// @throws what NodeLink throws.
  explicit Nodes(const std::function<std::unique_ptr<NodeTransport>()>& make,
                 std::chrono::milliseconds silence = kSilence);
  /// Elastic nodes, by a store and a transport of your own.
  explicit Nodes(std::shared_ptr<ElasticNodes> elastic) : elastic_(std::move(elastic)) {}

  int node() const;   ///< number of this node, from 0
  int nodes() const;  ///< 1 without a network
  /// Null with one node.
  NodeLink* link() const;
  /// Null unless the nodes are elastic; then `node`, `nodes` and `link` give the current values.
  ElasticNodes* elastic() const { return elastic_.get(); }

 private:
  std::shared_ptr<NodeLink> link_;
  std::shared_ptr<ElasticNodes> elastic_;
};

}  // namespace muster
