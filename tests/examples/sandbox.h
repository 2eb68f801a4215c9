#pragma once

#include "tests/examples/program.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/texts.h"

namespace muster::test {

/// An example program in an empty directory of its own, without data sets: its cache is empty, and no server
/// listens at the addresses of its downloads.
class Sandbox {
 public:
  explicit Sandbox(std::string executable) : executable_(std::move(executable)) {}

  Launch launch(std::vector<std::string> arguments) const {
    const std::string noServer = "http://127.0.0.1:1/";
    return {.directory = directory.path(),
            .arguments = std::move(arguments),
            .environment = {{"MUSTER_DATA_DIR", ""},
                            {"MUSTER_CACHE_DIR", cache.path().string()},
                            {"MUSTER_MNIST_URL", noServer},
                            {"MUSTER_FASHION_MNIST_URL", noServer},
                            {"MUSTER_CIFAR10_URL", noServer},
                            {"no_proxy", "127.0.0.1"}}};
  }
  Outcome run(std::vector<std::string> arguments) const {
    return runProgram(executable_, launch(std::move(arguments)));
  }

  TemporaryDirectory directory;
  TemporaryDirectory cache;

 private:
  std::string executable_;
};

}  // namespace muster::test
