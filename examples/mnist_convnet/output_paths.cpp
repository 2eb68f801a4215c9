#include "examples/mnist_convnet/output_paths.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "muster/core/base/error.h"

namespace example {
namespace {

namespace fs = std::filesystem;
using muster::FileError;

void checkFile(const fs::path& file) {
  if (file.empty()) return;
  if (fs::is_directory(file)) throw FileError(file, "cannot be written: it is a directory");
  const fs::path directory = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (::access(directory.c_str(), W_OK | X_OK) != 0)
    throw FileError(
        file, fmt::format("cannot be written: its directory: {}", std::generic_category().message(errno)));
}

void makeDirectory(const fs::path& directory) {
  if (directory.empty()) return;
  std::error_code problem;
  fs::create_directories(directory, problem);
  if (problem) throw FileError(directory, fmt::format("cannot be made: {}", problem.message()));
}

}  // namespace

void checkOutputPaths(const Options& options) {
  checkFile(options.model);
  checkFile(options.json);
  makeDirectory(options.report);
  makeDirectory(options.checkpointDirectory);
}

}  // namespace example
