// One node of a training whose program initialises and finalises MPI itself, for nodes_mpi_test: <serialized,
// multiple or funneled> <folder> <workers>. With `multiple` it calls MPI while it trains. Writes into the
// folder the bits of its model, and the exceptions.
#include <mpi.h>

#include "muster/parallel/nodes.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/parallel/nodes/node_processes/exit_status.h"
#include "tests/parallel/nodes/node_processes/toy.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

// Open MPI leaks some kilobytes.
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() {
  return 1;
}

namespace {

/// Adds up the ranks until all processes are told to stop. @return false for a wrong sum.
bool addRanks(const std::atomic<bool>& stopped) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (;;) {
    const int mine[] = {rank, stopped ? 0 : 1};
    int sums[] = {0, 0};
    MPI_Allreduce(mine, sums, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sums[0] != size * (size - 1) / 2) return false;
    if (sums[1] == 0) return true;
  }
}

int train(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string level = argv[1];
  const std::filesystem::path folder = argv[2];
  const int workers = std::atoi(argv[3]);
  int given = 0;
  MPI_Init_thread(nullptr, nullptr,
                  level == "funneled"     ? MPI_THREAD_FUNNELED
                  : level == "serialized" ? MPI_THREAD_SERIALIZED
                                          : MPI_THREAD_MULTIPLE,
                  &given);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const auto own = [&](const char* kind) { return folder / (std::string(kind) + std::to_string(rank)); };
  const auto refused = [] { return thrown<std::exception>([] { Nodes::mpi(); }); };
  if (level == "funneled") {
    writeFile(own("problem"), refused());
    MPI_Finalize();
    return 0;
  }
  std::atomic<bool> stopped{false}, right{true};
  // The wrapper, and with it a copy of the connection, is still there after MPI_Finalize.
  auto model = processToy();
  const Nodes nodes = Nodes::mpi();
  auto data = processToyData(nodes.nodes() * workers);
  auto wrapper = ParallelWrapper::Builder(model)
                     .workers(workers)
                     .pinThreads(false)
                     .averagingFrequency(3)
                     .nodes(nodes)
                     .build();
  {
    std::jthread adding;
    if (level == "multiple") adding = std::jthread([&] { right = addRanks(stopped); });
    wrapper.fit(data, 2);
    stopped = true;
  }
  const auto bits = stateBits(model);
  writeFile(own("bits"), {reinterpret_cast<const char*>(bits.data()), bits.size()});
  MPI_Finalize();
  writeFile(own("problem"), refused());
  writeFile(own("fit"), thrown<std::exception>([&] { wrapper.fit(data, 3); }));
  return right ? 0 : 3;
}

}  // namespace

int main(int argc, char** argv) {
  return test::exitStatus([&] { return train(argc, argv); });
}
