#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "muster/core/base/size2d.h"
#include "muster/core/nn/module.h"
#include "muster/core/ops/pool2d.h"

namespace muster {

/// Maximum over each window: [C, H, W] to [C, H', W'], H' = (H + 2 padding - kernel) / stride + 1, rounded
/// down. A stride of 0 is the kernel's size.
struct MaxPool2d {
  static constexpr std::string_view kType = "maxpool2d";

  Size2d kernel{2, 2};
  Size2d stride{0, 0};
  Size2d padding{0, 0};
  std::string name = {};

  Shape outputShape(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const;
};

/// Mean over each window, with padding as zeros. Sizes as for MaxPool2d.
struct AveragePool2d {
  static constexpr std::string_view kType = "avgpool2d";

  Size2d kernel{2, 2};
  Size2d stride{0, 0};
  Size2d padding{0, 0};
  std::string name = {};

  Shape outputShape(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const;
};

/// Maximum or mean over each whole channel: [C, H, W] to [C, 1, 1].
struct GlobalPool2d {
  static constexpr std::string_view kType = "globalpool2d";

  PoolKind kind = PoolKind::Average;
  std::string name = {};

  Shape outputShape(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const {}
};

}  // namespace muster
