#pragma once

#include <string>
#include <vector>

#include "tests/examples/sandbox.h"

namespace muster::test {

/// The program mnist_convnet.
class Convnet : public Sandbox {
 public:
  static constexpr const char* kExecutable = MUSTER_MNIST_CONVNET;

  Convnet() : Sandbox(kExecutable) {}

  /// Runs on a few generated digits, unpinned, because other tests run concurrently.
  Outcome runSmall(std::vector<std::string> more = {}) const { return run(small(std::move(more))); }
  static std::vector<std::string> small(std::vector<std::string> more) {
    std::vector<std::string> arguments{"--data",        "generated", "--examples", "600",
                                       "--pin-threads", "false",     "--device",   "cpu"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
};

}  // namespace muster::test
