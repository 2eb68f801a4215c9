// One node of a training of a libtorch module for torch_nodes_test: <workers> <folder>. Writes the bits of
// its model into the folder.
#include "tests/core/interop/torch/conv_net.h"

#include <fstream>
#include <iostream>

#include "muster/parallel/nodes.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/support/standard.h"
#include "tests/support/state_bits.h"

using namespace muster;

int main(int argc, char** argv) {
  try {
    if (argc != 3) return 2;
    const Nodes nodes = Nodes::mpi(std::chrono::seconds(30));
    auto model = test::convModel();
    auto data = test::imageBatches(13);
    ParallelWrapper::Builder(*model)
        .workers(std::atoi(argv[1]))
        .averagingFrequency(2)
        .pinThreads(false)
        .nodes(nodes)
        .build()
        .fit(data, 2);
    const auto bits = test::stateBits(*model);
    std::ofstream(std::filesystem::path(argv[2]) / std::to_string(nodes.node()), std::ios::binary)
        .write(reinterpret_cast<const char*>(bits.data()), static_cast<std::streamsize>(bits.size()));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
