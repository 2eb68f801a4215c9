#pragma once

#include <memory>

#include "muster/core/ops/conv2d.h"

namespace muster::cpu {

/// Plans a oneDNN convolution for these layouts of input and output (not SampleBlocks).
class OneDnnConv2dPlanner {
 public:
  OneDnnConv2dPlanner(const Conv2dShape& shape, Layout input, Layout output, Context& context);
  ~OneDnnConv2dPlanner();
  OneDnnConv2dPlanner(const OneDnnConv2dPlanner&) = delete;
  OneDnnConv2dPlanner& operator=(const OneDnnConv2dPlanner&) = delete;

  /// Whether oneDNN has fast kernels for the layouts, so that only weights are reordered.
  /// @param inputGradient  false: the gradient of the input is not needed.
  bool fast(bool inputGradient) const;
  std::unique_ptr<Conv2dPlan> plan();

  struct Descriptors;

 private:
  std::unique_ptr<Descriptors> descriptors_;
};

}  // namespace muster::cpu
