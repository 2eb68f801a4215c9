#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/data/in_memory.h"
#include "muster/core/nn/network.h"

// The networks whose training `end_to_end` measures. libtorch_training.cpp has each of them in libtorch.

namespace muster::bench {

struct Workload {
  std::string name, title;
  std::int64_t batch = 0;    ///< examples a step
  std::int64_t batches = 0;  ///< a worker and epoch
  /// Multiplications and additions of a training step, an example: those of convolutions and matrix products,
  /// forward, of the weights' and of the inputs' gradients, without the input gradient of a first layer.
  /// Winograd's algorithm needs fewer, so a share of the machine's peak may exceed 1.
  double operations = 0;
  std::function<std::unique_ptr<Network>(Context&)> network;
  std::function<InMemoryDataSetIterator(std::int64_t batches, std::int64_t batch)> data;
  bool convolutional = false;  ///< measured with AVX2 alone, too
};

/// All, in the order of the tables.
const std::vector<Workload>& workloads();

/// @throws std::invalid_argument listing the names, if there is none of this name.
const Workload& workload(std::string_view name);

}  // namespace muster::bench
