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

}  // namespace muster::test
