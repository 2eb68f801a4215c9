#include "muster/core/nn/layers/reshape.h"

#include "muster/core/base/error.h"
#include "muster/core/nn/layers/field_descriptions.h"

namespace muster {
namespace {

/// The output is the input's memory: nothing runs.
class ReshapeProgram final : public ModuleProgram {
 public:
  bool aliasesInput() const override { return true; }
  void forward(const Tensor&, Tensor&, const StepInfo&) override {}
  void backward(const Tensor&, const Tensor&, Tensor&, Tensor&, const StepInfo&) override {}
};

}  // namespace

std::unique_ptr<ModuleProgram> Flatten::compile(const ModuleBinding&, Context&) const {
  return std::make_unique<ReshapeProgram>();
}

void Flatten::fields(Fields& f) {
  f.field("name", name, detail::kNameField);
}

Shape Reshape::outputShape(const Shape& input) const {
  require(shape.elements() == input.elements(), "reshape: {} has {} elements, but its input {} has {}",
          shape.toString(), shape.elements(), input.toString(), input.elements());
  return shape;
}

std::unique_ptr<ModuleProgram> Reshape::compile(const ModuleBinding&, Context&) const {
  return std::make_unique<ReshapeProgram>();
}

void Reshape::fields(Fields& f) {
  f.field("name", name, detail::kNameField);
  f.field("shape", shape, "of one example, without the batch", "[1, )");
}

void Reshape::validate() const {
  require(!shape.empty() && shape.elements() > 0, "reshape: expected a shape with elements, got {}",
          shape.toString());
}

}  // namespace muster
