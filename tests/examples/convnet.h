#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tests/examples/sandbox.h"

namespace muster::test {

/// `muster train` on the run file of `./run mnist`.
class Convnet : public Sandbox {
 public:
  static constexpr const char* kExecutable = MUSTER_PROGRAM;

  Convnet() : Sandbox(kExecutable) {}

  /// @param more  arguments after `train mnist.json`.
  Launch launch(std::vector<std::string> more) const {
    more.insert(more.begin(), {"train", MUSTER_MNIST_RUN});
    return Sandbox::launch(std::move(more));
  }
  Outcome run(std::vector<std::string> more) const {
    return runProgram(kExecutable, launch(std::move(more)));
  }

  /// The tensors of a model file as bytes, without what its header says, such as the run.
  std::string tensorsIn(const std::filesystem::path& name) const {
    const auto file = readFile(directory.path() / name);
    std::uint64_t header = 0;
    std::memcpy(&header, file.data(), std::min(file.size(), sizeof header));
    return file.substr(std::min<std::uint64_t>(file.size(), 8 + header));
  }

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
