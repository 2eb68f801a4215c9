#pragma once

#include <vector>

#include "tests/bench/trace_summary.h"

namespace muster::bench {

/// Traces this process's use of a GPU with CUPTI, which needs neither a tool nor privileges and comes with
/// the CUDA toolkit and with PyTorch. One per process, created before the first use of a GPU and never
/// destroyed before the process ends.
class KernelTrace {
 public:
  /// @throws std::runtime_error saying why nothing can be traced here.
  KernelTrace();

  /// The GPU's finished activities since the last call.
  std::vector<Activity> take();
};

}  // namespace muster::bench
