#include "muster/core/nn/layers/resize2d.h"

#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/nn/layers/field_descriptions.h"
#include "muster/core/nn/layers/function_program.h"
#include "muster/core/ops/detail/extents.h"

namespace muster {
Shape Upsample2d::outputShape(const Shape& input) const {
  require(input.rank() == 3, "upsample2d: expected an input [C, H, W], got {}", input.toString());
  detail::requireExtents("upsample2d", {input[1], input[2], scale[0], scale[1]});
  return {input[0], scale[0] * input[1], scale[1] * input[2]};
}

std::unique_ptr<ModuleProgram> Upsample2d::compile(const ModuleBinding& binding, Context& context) const {
  return functionProgram(
      binding.offered(),
      [mode = mode, &context](const Tensor& x, Tensor& y) { upsample2d(mode, x, y, context); },
      [mode = mode, &context](const Tensor& gradY, Tensor& gradX) {
        upsample2dBackward(mode, gradY, gradX, context);
      });
}

void Upsample2d::fields(Fields& f) {
  f.field("name", name, detail::kNameField);
  f.field("scale", scale, "factors of height and width", "[1, )");
  f.field("mode", mode, "how the pixels between are made");
}

void Upsample2d::validate() const {
  require(scale[0] >= 1 && scale[1] >= 1, "upsample2d: scale must be at least 1, got [{}, {}]", scale[0],
          scale[1]);
}

Shape ZeroPad2d::outputShape(const Shape& input) const {
  require(input.rank() == 3, "zeropad2d: expected an input [C, H, W], got {}", input.toString());
  return padded2d(input.prepend(1), padding).dropFirst();
}

std::unique_ptr<ModuleProgram> ZeroPad2d::compile(const ModuleBinding& binding, Context& context) const {
  return functionProgram(
      binding.offered(),
      [padding = padding, &context](const Tensor& x, Tensor& y) { pad2d(x, padding, y, context); },
      [padding = padding, &context](const Tensor& gradY, Tensor& gradX) {
        pad2dBackward(gradY, padding, gradX, context);
      });
}

void ZeroPad2d::fields(Fields& f) {
  f.field("name", name, detail::kNameField);
  f.field("padding", padding, "zeros at the top, bottom, left and right", "[0, )");
}

void ZeroPad2d::validate() const {
  require(std::ranges::min(padding) >= 0, "zeropad2d: padding cannot be negative, got [{}]",
          fmt::join(padding, ", "));
}

}  // namespace muster
