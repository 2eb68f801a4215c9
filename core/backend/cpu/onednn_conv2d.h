#pragma once

#include <memory>

#include "muster/core/ops/conv2d.h"

namespace muster::cpu {

/// The passes of a convolution that are to use Winograd's algorithm, F(4x4, 3x3): on tiles of 4x4 outputs it
/// multiplies 36 times where the definition does 144 times. Lavin and Gray 2016, "Fast algorithms for
/// convolutional neural networks".
struct Winograd {
  bool forward = false, backwardData = false, backwardWeights = false;
  bool operator==(const Winograd&) const = default;
};

/// Whether oneDNN has all three passes for this shape on this processor: one group, a kernel 3x3, stride and
/// dilation 1, AVX-512.
bool winogradConv2dSupports(const Conv2dShape& shape, Context& context);

/// Plans a convolution with oneDNN whose input and output lie in these layouts (not SampleBlocks).
class OneDnnConv2dPlanner {
 public:
  /// @param winograd  only where winogradConv2dSupports, with both layouts ChannelBlocks.
  OneDnnConv2dPlanner(const Conv2dShape& shape, Layout input, Layout output, Context& context,
                      Winograd winograd = {});
  ~OneDnnConv2dPlanner();
  OneDnnConv2dPlanner(const OneDnnConv2dPlanner&) = delete;
  OneDnnConv2dPlanner& operator=(const OneDnnConv2dPlanner&) = delete;

  /// Whether oneDNN has fast kernels for the layouts, so that nothing but weights is reordered. A gradient of
  /// the input is left out where `inputGradient` is false.
  bool fast(bool inputGradient) const;
  std::unique_ptr<Conv2dPlan> plan();

  struct Descriptors;

 private:
  std::unique_ptr<Descriptors> descriptors_;
};

}  // namespace muster::cpu
