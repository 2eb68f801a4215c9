#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "examples/compare_convergence/grid.h"
#include "examples/compare_convergence/link_model.h"
#include "examples/compare_convergence/results_file.h"
#include "examples/support/data_sets.h"
#include "examples/support/watching.h"

namespace convergence {

/// Command-line options.
struct Options {
  GridLists lists;
  std::string model = "convnet";  ///< resnet18 or mlp
  std::int64_t width = 64;        ///< channels of resnet18's first stage
  std::int64_t epochs = 1;
  std::string learningRateSchedule = "constant";  ///< or cosine
  std::optional<std::int64_t> testEvery;          ///< samples; empty: a tenth of an epoch
  double momentum = 0.9;                          ///< of nesterovs
  double l2 = 5e-4;
  bool pinThreads = true;
  example::DataChoice data = {.names = example::kImagesAndMixtures};

  double target = 0.97;  ///< accuracy
  std::optional<Link> link;
  std::string linkText;  ///< as it was given
  std::filesystem::path out = "comparison";
  example::WatchOptions watch;
};

/// Reads the command line; the help names the program by its first word. @return nothing if it printed the
/// help.
/// @throws muster::InvalidArgument naming the option that is unknown or out of range.
std::optional<Options> readOptions(int argc, const char* const* argv);

/// The options that decide the results, by name; `data` and `testEvery` are the resolved values.
Recipe recipeOf(const Options& options, const example::DataSets& data, std::int64_t testEvery);

}  // namespace convergence
