#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "muster/core/io/weights.h"
#include "muster/core/nn/network.h"

namespace program {

/// The options of muster convert.
struct ConvertOptions {
  std::filesystem::path out;
  std::string to;
  std::string network;
  std::vector<std::string> sets, names, keep, ignore, shapes;
  std::int64_t batch = 0;
  bool lengths = false;
};

muster::WeightOptions weightOptions(const ConvertOptions& options);

// The networks that muster convert reads.

/// A model of Deeplearning4j.
std::unique_ptr<muster::Network> fromZip(const std::string& file, const ConvertOptions& options);
/// Loads another framework's weights into the network of `--network`.
std::unique_ptr<muster::Network> fromWeights(const std::string& file, const ConvertOptions& options);
/// A model of muster without what resumes its training.
std::unique_ptr<muster::Network> fromModel(const std::string& file);

}  // namespace program
