#pragma once

#include <cstdint>
#include <string>

// Inference without callers that wait: `output` on one thread beside libtorch, and `evaluate` with workers.

namespace muster::bench {

struct DirectOptions {
  double seconds = 2;  ///< of each measurement
  int rounds = 5;
  std::string network = {};   ///< only networks whose titles contain this text
  std::string jsonFile = {};  ///< receives all measurements; empty: none
  bool output = true, evaluate = true;
};

/// Measures in turns, each arm in its own process, and prints tables.
void compareDirect(const DirectOptions& options);

/// One arm: prints a line of JSON. @param network  lenet or convnet
void measureOutput(const std::string& network, std::int64_t batch, double seconds);
/// Another arm: the convnet on MNIST's test images, or generated digits if MNIST is not on this machine.
void measureEvaluate(int workers, double seconds);
/// Another arm: the machine's peak.
void measurePeak(int threads, double seconds);

}  // namespace muster::bench
