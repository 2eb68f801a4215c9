#include "muster/core/nn/layers/conv2d.h"

#include "muster/core/nn/layers/conv2d_program.h"

namespace muster {

Shape Conv2d::outputShape(const Shape& input) const {
  return convolutionSizes<Conv2dShape>(*this, input.prepend(1)).output().dropFirst();
}

std::vector<ParameterSpec> Conv2d::parameters(const Shape& input) const {
  return convolutionParameters<Conv2dShape>(*this, input);
}

std::unique_ptr<ModuleProgram> Conv2d::compile(const ModuleBinding& binding, Context& context) const {
  const auto sizes = convolutionSizes<Conv2dShape>(*this, binding.input());
  return convolutionProgram(planConv2d(sizes, context, Conv2dChoice::Auto, binding.offered()), sizes.output(),
                            activation, binding, context);
}

void Conv2d::fields(Fields& f) {
  convolutionFields(*this, f);
}

void Conv2d::validate() const {
  requireConvolution2d(*this);
}

}  // namespace muster
