#include "examples/mnist_convnet/output_paths.h"

#include <fmt/format.h>

#include <system_error>

#include "examples/support/output_file.h"
#include "muster/core/base/error.h"

namespace example {
namespace {

namespace fs = std::filesystem;
using muster::FileError;

void makeDirectory(const fs::path& directory) {
  if (directory.empty()) return;
  std::error_code problem;
  fs::create_directories(directory, problem);
  if (problem) throw FileError(directory, fmt::format("cannot be made: {}", problem.message()));
}

}  // namespace

void checkOutputPaths(const Options& options) {
  checkOutputFile(options.model);
  checkOutputFile(options.json);
  makeDirectory(options.report);
  makeDirectory(options.checkpointDirectory);
}

}  // namespace example
