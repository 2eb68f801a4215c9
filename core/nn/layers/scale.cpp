#include "muster/core/nn/layers/scale.h"

#include <cmath>

#include "muster/core/base/error.h"
#include "muster/core/nn/layers/field_descriptions.h"
#include "muster/core/nn/layers/function_program.h"
#include "muster/core/ops/elementwise.h"

namespace muster {

std::unique_ptr<ModuleProgram> Scale::compile(const ModuleBinding& binding, Context& context) const {
  return functionProgram(
      binding.offered(), [by = factor, &context](const Tensor& x, Tensor& y) { scale(by, x, y, context); },
      [by = factor, &context](const Tensor& gradY, Tensor& gradX) { scale(by, gradY, gradX, context); });
}

void Scale::fields(Fields& f) {
  f.field("name", name, detail::kNameField);
  f.field("factor", factor, "by which the input is multiplied");
}

void Scale::validate() const {
  require(std::isfinite(factor), "scale: the factor must be finite, got {}", factor);
}

}  // namespace muster
