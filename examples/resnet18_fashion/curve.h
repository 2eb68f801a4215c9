#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace example {

/// What an epoch came to.
struct EpochResult {
  std::int64_t epoch = 1;  ///< from 1, over the network's life
  double loss = 0;         ///< mean over the training batches
  double accuracy = 0;     ///< on the test images, from 0 to 1
  double seconds = 0;      ///< of training, without the test
};

/// The epochs as a table, a row each.
std::string curveTable(const std::vector<EpochResult>& epochs);

/// Test accuracy by epoch as an SVG drawing. @param name  of the line.
std::string curvePlot(const std::vector<EpochResult>& epochs, const std::string& title,
                      const std::string& name);

}  // namespace example
