#include <atomic>
#include <chrono>
#include <thread>

#include "muster/core/base/process_name.h"
#include "muster/parallel/nodes.h"
#include "muster/parallel/nodes/launched_processes.h"
#include "muster/parallel/nodes/mpi/mpi_transport.h"
#include "muster/parallel/nodes/node_link.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

/// How long a node that has lost another one waits before it ends all: node 0 until the others have heard of
/// it and their fit() has thrown, the others until node 0 has written its files.
constexpr auto kTimeToThrow = 2s, kTimeToSave = 10s;

/// MPI can be initialised once in a process, so its connection lasts until the program ends, or finalises MPI
/// itself. Hence this static owns a thread.
struct Connection {
  Mutex mutex;
  std::shared_ptr<NodeLink> link MUSTER_GUARDED_BY(mutex);

  Connection() { living = this; }
  ~Connection() {
    end();
    living = nullptr;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Ends together with the other nodes.
  void end() {
    const Lock lock(mutex);
    if (!link) return;
    const int node = link->node();
    const bool failedBefore = link->failed();
    const bool failed = failedBefore || !link->end();
    link.reset();
    if (!failed) return;
    if (failedBefore) std::this_thread::sleep_for(node > 0 ? kTimeToSave : kTimeToThrow);
    abortMpi();
  }

  /// A program may finalise MPI after its statics are destroyed.
  static inline std::atomic<Connection*> living{nullptr};
};

std::unique_ptr<NodeTransport> makeTransport() {
  return makeMpiTransport([] {
    if (Connection* const connection = Connection::living) connection->end();
  });
}

}  // namespace

Nodes Nodes::mpi(std::chrono::milliseconds silence) {
  static Connection connection;
  Nodes nodes;
  if (launchedProcesses() == "1") return nodes;
  const Lock lock(connection.mutex);
  if (!connection.link) connection.link = std::make_shared<NodeLink>(makeTransport, silence);
  nodes.link_ = connection.link;
  require(nodes.nodes() > 1, "nodes: a launcher has started {} processes, but not by the MPI of this program",
          launchedProcesses());
  setProcessName(connection.link->nameOf(nodes.node()));
  return nodes;
}

}  // namespace muster
