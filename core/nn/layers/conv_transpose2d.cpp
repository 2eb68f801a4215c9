#include "muster/core/nn/layers/conv_transpose2d.h"

#include "muster/core/nn/layers/conv2d_program.h"
#include "muster/core/ops/conv_transpose2d.h"

namespace muster {

Shape ConvTranspose2d::outputShape(const Shape& input) const {
  return convolutionSizes<ConvTranspose2dShape>(*this, input.prepend(1)).output().dropFirst();
}

std::vector<ParameterSpec> ConvTranspose2d::parameters(const Shape& input) const {
  return convolutionParameters<ConvTranspose2dShape>(*this, input);
}

std::unique_ptr<ModuleProgram> ConvTranspose2d::compile(const ModuleBinding& binding,
                                                        Context& context) const {
  const auto sizes = convolutionSizes<ConvTranspose2dShape>(*this, binding.input());
  return convolutionProgram(planConvTranspose2d(sizes, context, binding.offered()), sizes.output(),
                            activation, binding, context);
}

void ConvTranspose2d::fields(Fields& f) {
  convolutionFields(*this, f);
}

void ConvTranspose2d::validate() const {
  requireConvolution2d(*this);
}

}  // namespace muster
