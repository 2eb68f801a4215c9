#pragma once

#include <vector>

#include "tests/bench/trace_summary.h"

namespace muster::bench {

/// Looks on while this process uses a GPU, by CUDA's own tracing (CUPTI), which needs neither a tool nor
/// rights and comes with the toolkit and with PyTorch. One in a process, made before it first uses a GPU, and
/// never destroyed before that ends.
class KernelTrace {
 public:
  /// @throws std::runtime_error saying why nothing can be traced here.
  KernelTrace();

  /// What the GPU did since the last call. All of it is done.
  std::vector<Activity> take();
};

}  // namespace muster::bench
