#pragma once

#include <string>
#include <vector>

#include "tests/examples/program.h"
#include "tests/support/temporary_directory.h"

namespace muster::test {

/// The example program in an empty directory of its own, where no data set is to be had: nothing in the
/// cache, and nobody listens where it would fetch from.
class Convnet {
 public:
  static constexpr const char* kExecutable = MUSTER_MNIST_CONVNET;

  Launch launch(std::vector<std::string> arguments) const {
    const std::string nobody = "http://127.0.0.1:1/";
    return {.directory = directory.path(),
            .arguments = std::move(arguments),
            .environment = {{"MUSTER_DATA_DIR", ""},
                            {"MUSTER_CACHE_DIR", cache.path().string()},
                            {"MUSTER_MNIST_URL", nobody},
                            {"MUSTER_FASHION_MNIST_URL", nobody},
                            {"no_proxy", "127.0.0.1"}}};
  }
  Outcome run(std::vector<std::string> arguments) const {
    return runProgram(kExecutable, launch(std::move(arguments)));
  }
  /// On a few digits that the program draws, and without pinning, as other tests run beside this one.
  Outcome runSmall(std::vector<std::string> more = {}) const { return run(small(std::move(more))); }
  static std::vector<std::string> small(std::vector<std::string> more) {
    std::vector<std::string> arguments{"--data", "generated", "--examples", "600", "--pin-threads", "false"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  TemporaryDirectory directory;
  TemporaryDirectory cache;
};

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace muster::test
