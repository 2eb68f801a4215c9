#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/core/base/size2d.h"
#include "muster/core/nn/module.h"

namespace muster {

/// Transposed convolution, which enlarges images: [C, H, W] to [outChannels, H', W'], H' = (H - 1) stride - 2
/// padding + dilation (kernel - 1) + 1 + outputPadding. `padding` is removed from each side of the output,
/// `outputPadding` (below the stride) is added at its bottom and right. Parameters: weight [C, outChannels /
/// groups, kernel, kernel], bias [outChannels]. Any activation except softmax.
struct ConvTranspose2d {
  static constexpr std::string_view kType = "convtranspose2d";

  std::int64_t outChannels = 0;
  Size2d kernel{1, 1};
  Size2d stride{1, 1};
  Size2d padding{0, 0};
  Size2d outputPadding{0, 0};
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
