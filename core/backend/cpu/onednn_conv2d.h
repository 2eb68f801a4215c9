#pragma once

#include <memory>

#include "muster/core/ops/conv2d.h"

namespace muster::cpu {

/// Which passes of a convolution use Winograd's algorithm F(4x4, 3x3): for a tile of 4x4 outputs it takes 36
/// multiplications instead of 144. Lavin and Gray 2016, "Fast algorithms for convolutional neural networks".
struct Winograd {
  bool forward = false, backwardData = false, backwardWeights = false;
  bool operator==(const Winograd&) const = default;
};

/// Whether oneDNN supports all three passes for this shape on this processor: one group, 3x3 kernel, stride
/// and dilation 1, AVX-512, float32; oneDNN 3.7 has none of them.
bool winogradConv2dSupports(const Conv2dShape& shape, Context& context);

/// Plans a oneDNN convolution for these layouts of input and output (not SampleBlocks).
class OneDnnConv2dPlanner {
 public:
  /// @param winograd  requires winogradConv2dSupports and both layouts ChannelBlocks.
  OneDnnConv2dPlanner(const Conv2dShape& shape, Layout input, Layout output, Context& context,
                      Winograd winograd = {});
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
