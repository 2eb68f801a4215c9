#pragma once

#include "tests/examples/sandbox.h"

namespace muster::test {

/// A sandbox with run.json: the network and the rule of `./run mnist` on a few generated digits, on CPUs, and
/// unpinned, because other tests run concurrently.
class ConvnetRun : public Sandbox {
 public:
  explicit ConvnetRun(std::string executable = MUSTER_PROGRAM) : Sandbox(std::move(executable)) {
    write("run.json", R"({"format": "muster-run/1",
      "data": {"type": "generated", "trainExamples": 600, "testExamples": 600, "batch": 128},
      "network": "convnet",
      "training": {"workers": 2, "strategy": {"name": "averaging", "every": 3}, "epochs": 1, "devices": "cpu",
                   "pinThreads": false}})");
  }
};

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
