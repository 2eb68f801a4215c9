#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "muster/core/base/size2d.h"
#include "muster/core/nn/module.h"
#include "muster/core/ops/pad2d.h"
#include "muster/core/ops/upsample2d.h"

namespace muster {

/// Enlarges images by integer factors: [C, H, W] to [C, scale[0] H, scale[1] W]. ops/upsample2d.h has the
/// formulas of the bilinear mode (align_corners = false).
struct Upsample2d {
  static constexpr std::string_view kType = "upsample2d";

  Size2d scale{2, 2};
  UpsampleMode mode = UpsampleMode::Nearest;
  std::string name = {};

  Shape outputShape(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const;
};

/// Adds zeros around images: [C, H, W] to [C, top + H + bottom, left + W + right]. One number is
/// all four sides: ZeroPad2d{1}.
struct ZeroPad2d {
  static constexpr std::string_view kType = "zeropad2d";

  Padding2d padding{0, 0, 0, 0};  ///< top, bottom, left, right
  std::string name = {};

  Shape outputShape(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const;
};

}  // namespace muster
