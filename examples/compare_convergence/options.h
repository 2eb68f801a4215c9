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

/// What the command line can say.
struct Options {
  GridLists lists;
  std::string model = "convnet";  ///< resnet18 or mlp
  std::int64_t width = 64;        ///< of resnet18
  std::int64_t epochs = 1;
  std::string learningRateSchedule = "constant";  ///< or cosine
  std::optional<std::int64_t> testEvery;          ///< samples; nothing: a tenth of an epoch
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

/// Reads the command line. @return nothing where help was asked for and has been printed.
/// @throws muster::InvalidArgument with one sentence naming the option that is unknown or out of range.
std::optional<Options> readOptions(int argc, const char* const* argv);

/// What decides the numbers, by the names of the options; `data` and `testEvery` as they turned out.
Recipe recipeOf(const Options& options, const example::DataSets& data, std::int64_t testEvery);

}  // namespace convergence
