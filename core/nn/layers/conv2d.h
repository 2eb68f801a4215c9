#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/core/base/size2d.h"
#include "muster/core/nn/module.h"
#include "muster/core/ops/conv2d.h"

namespace muster {

/// Two-dimensional convolution: [C, H, W] to [outChannels, H', W'], H' = (H + 2 padding - dilation (kernel -
/// 1) - 1) / stride + 1, rounded down. `groups` divides both channel counts, and each group of outputs
/// depends only on its own group of inputs; C groups make a depthwise convolution. Parameters: weight
/// [outChannels, C / groups, kernel, kernel], bias [outChannels].
struct Conv2d {
  static constexpr std::string_view kType = "conv2d";

  std::int64_t outChannels = 0;
  Size2d kernel{1, 1};
  Size2d stride{1, 1};
  Size2d padding{0, 0};
  Size2d dilation{1, 1};
  std::int64_t groups = 1;
  Activation activation = Activation::Identity;
  Init init = Init::xavier();
  bool bias = true;
  std::string name = {};

  Shape outputShape(const Shape& input) const;
  std::vector<ParameterSpec> parameters(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const;
};

}  // namespace muster
