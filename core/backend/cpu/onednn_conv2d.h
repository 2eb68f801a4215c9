#pragma once

#include <memory>

#include "muster/core/ops/conv2d.h"

namespace muster::cpu {

/// Plans a convolution with oneDNN whose input and output lie in these layouts (not SampleBlocks).
class OneDnnConv2dPlanner {
 public:
  OneDnnConv2dPlanner(const Conv2dShape& shape, Layout input, Layout output, Context& context);
  ~OneDnnConv2dPlanner();
  OneDnnConv2dPlanner(const OneDnnConv2dPlanner&) = delete;
  OneDnnConv2dPlanner& operator=(const OneDnnConv2dPlanner&) = delete;

  /// Whether oneDNN has fast kernels for the layouts, so that nothing but weights is reordered. A gradient of
  /// the input is left out where `inputGradient` is false.
  bool fast(bool inputGradient) const;
  std::unique_ptr<Conv2dPlan> plan();

 private:
  struct Descriptors;
  std::unique_ptr<Descriptors> descriptors_;
};

}  // namespace muster::cpu
