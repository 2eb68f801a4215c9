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
  std::int64_t batch = 0;    ///< examples per step
  std::int64_t batches = 0;  ///< per worker and epoch
  /// Multiplications and additions per example of a training step: convolutions and matrix products of the
  /// forward pass, the weights' gradients and the inputs' gradients, without the input gradient of a first
  /// layer. Winograd's algorithm needs fewer, so a share of the machine's peak may exceed 1.
  double operations = 0;
  std::function<std::unique_ptr<Network>(Context&)> network;
  std::function<InMemoryDataSetIterator(std::int64_t batches, std::int64_t batch)> data;
  bool convolutional = false;  ///< also measured with AVX2 only
};

/// All workloads, in the order of the tables.
const std::vector<Workload>& workloads();

/// @throws std::invalid_argument listing the names, if there is none of this name.
const Workload& workload(std::string_view name);

}  // namespace muster::bench
