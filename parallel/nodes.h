#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace muster {

class ElasticNodes;
class NodeLink;
class NodeTransport;

/// The processes (nodes) that train one model together, usually one on each machine, each with workers of its
/// own. A value; copies share one connection, which ends with the last of them.
///
///     ParallelWrapper::Builder(model).workers(2).averagingFrequency(30).nodes(Nodes::mpi()).build();
///
/// Each of N nodes runs the same program with the same options, model and data. Worker l of node n is worker
/// l * N + n of the training, and trains only that worker's batches. The result has the bits of one process
/// with N times the workers and `groups(N)`, for every transport. Nodes trust their network.
class Nodes {
 public:
  /// How long a node may be silent before it counts as lost. Every node sends signs of life, also over a slow
  /// link and during long steps.
  static constexpr std::chrono::milliseconds kSilence{30'000};

  /// One node, and no network.
  Nodes() = default;
  /// The processes that `mpirun` has started. Needs the library muster::nodes, which is built where MPI was
  /// found. The first call connects, and waits for the other nodes; the connection ends with the program,
  /// which ends when all nodes do. A program that has initialised MPI itself needs MPI_THREAD_SERIALIZED.
  /// @param silence  of the first call. @throws NodeFailure if a node does not answer.
  static Nodes mpi(std::chrono::milliseconds silence = kSilence);
  /// How nodes find each other without a launcher, by Gloo.
  struct Gloo {
    std::string store = {};      ///< where all meet: a directory (made if missing), or redis://host:port/name
    int node = 0;                ///< this one, from 0
    int nodes = 1;               ///< of all
    std::string interface = {};  ///< to listen on, and on no other, as in "eth0", or "lo" on one machine
    std::chrono::milliseconds silence = kSilence;
    std::chrono::milliseconds patience{120'000};  ///< for all to come
  };
  /// Processes that were started one by one, over TCP. Needs the library muster::gloo, which is built where
  /// Gloo was found. Waits for the other nodes. The connection ends with the last copy, when all nodes do.
  /// @throws InvalidArgument naming an option; NodeFailure if not all nodes come.
  static Nodes gloo(const Gloo& options);
  /// How the nodes of a training that come and go find each other, by Gloo. No node has a number of its own.
  struct Elastic {
    std::string store = {};      ///< as of Gloo
    int minNodes = 1;            ///< with fewer the training waits
    std::string interface = {};  ///< as of Gloo
    std::chrono::milliseconds silence = kSilence;
    std::chrono::milliseconds patience{120'000};  ///< how long it waits for so many
  };
  /// Processes that may join and leave while they train. Each `fit` begins with those that have come, at
  /// least `minNodes`. One that joins later takes model, counters and place in the data from a member, and
  /// trains from the start of a round on. If one is lost, its round is dropped, and the others go on from the
  /// last merge, with its batches dealt anew; `fit` fails if fewer than `minNodes` are left for as long as
  /// `patience`. The bits depend on the members of each round, which are logged, and on
  /// nothing else. Needs the library muster::gloo, as `gloo` does. See parallel/elastic/README.md.
  /// @throws InvalidArgument naming an option; NodeFailure if the store cannot be reached.
  static Nodes elastic(const Elastic& options);
  /// Connects by a transport of your own. @param make  is called on the thread that communicates.
  /// @throws as NodeLink.
  explicit Nodes(const std::function<std::unique_ptr<NodeTransport>()>& make,
                 std::chrono::milliseconds silence = kSilence);

  int node() const;   ///< this one, from 0
  int nodes() const;  ///< 1 without a network
  /// Null with one node.
  NodeLink* link() const;
  /// Null unless nodes come and go; then the members above are those of the moment.
  ElasticNodes* elastic() const { return elastic_.get(); }

 private:
  std::shared_ptr<NodeLink> link_;
  std::shared_ptr<ElasticNodes> elastic_;
};

}  // namespace muster
