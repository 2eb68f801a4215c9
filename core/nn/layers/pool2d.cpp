#include "muster/core/nn/layers/pool2d.h"

#include "muster/core/base/error.h"
#include "muster/core/nn/layers/field_descriptions.h"
#include "muster/core/nn/layers/pool2d_program.h"

namespace muster {

template <>
struct EnumNames<PoolKind> {
  static constexpr std::array<std::pair<PoolKind, std::string_view>, 2> kNames{{
      {PoolKind::Max, "max"},
      {PoolKind::Average, "average"},
  }};
};

namespace {

Pool2dShape withInput(Pool2dShape shape, const Shape& input, std::string_view type) {
  require(input.rank() == 4, "{}: expected an input [C, H, W], got {}", type, input.dropFirst().toString());
  shape.batch = input[0];
  shape.channels = input[1];
  shape.height = input[2];
  shape.width = input[3];
  return shape;
}

template <typename Pool>
Pool2dShape imageShape(PoolKind kind, const Pool& layer, const Shape& input) {
  Pool2dShape shape{.kind = kind, .kernel = layer.kernel, .stride = layer.stride, .padding = layer.padding};
  for (int i = 0; i < 2; ++i)
    if (shape.stride[i] == 0) shape.stride[i] = shape.kernel[i];
  return withInput(shape, input, Pool::kType);
}

Pool2dShape globalShape(PoolKind kind, const Shape& input) {
  auto shape = withInput({.kind = kind, .stride = {1, 1}}, input, GlobalPool2d::kType);
  shape.kernel = {shape.height, shape.width};
  return shape;
}

std::unique_ptr<ModuleProgram> compilePool(const Pool2dShape& shape, const ModuleBinding& binding,
                                           Context& context) {
  return std::make_unique<Pool2dProgram>(shape, binding.offered(), context);
}

Shape imageOf(const Pool2dShape& shape) {
  shape.validate();
  return shape.output().dropFirst();
}

template <typename Pool>
void visitImagePool(Pool& layer, Fields& f) {
  f.field("name", layer.name, detail::kNameField);
  f.field("kernel", layer.kernel, "height and width of a window", "[1, )");
  f.field("stride", layer.stride, "step from one window to the next; 0: the kernel's size", "[0, )");
  f.field("padding", layer.padding,
          "at the top and bottom, and at both sides: zeros in a mean, never the maximum", "[0, )");
}

template <typename Pool>
void checkImagePool(const Pool& layer) {
  require((layer.stride[0] == 0) == (layer.stride[1] == 0),
          "{}: a stride of 0 is the kernel's size in both directions, got [{}, {}]", Pool::kType,
          layer.stride[0], layer.stride[1]);
  for (int i = 0; i < 2; ++i) {
    require(layer.kernel[i] >= 1, "{}: kernel must be at least 1, got {}", Pool::kType, layer.kernel[i]);
    require(layer.stride[i] >= 0, "{}: stride cannot be negative, got {}", Pool::kType, layer.stride[i]);
    require(layer.padding[i] >= 0 && layer.padding[i] <= layer.kernel[i] / 2,
            "{}: padding must be between 0 and half the kernel, got {} with kernel {}", Pool::kType,
            layer.padding[i], layer.kernel[i]);
  }
}

}  // namespace

Shape MaxPool2d::outputShape(const Shape& input) const {
  return imageOf(imageShape(PoolKind::Max, *this, input.prepend(1)));
}
std::unique_ptr<ModuleProgram> MaxPool2d::compile(const ModuleBinding& binding, Context& context) const {
  return compilePool(imageShape(PoolKind::Max, *this, binding.input()), binding, context);
}
void MaxPool2d::fields(Fields& f) {
  visitImagePool(*this, f);
}
void MaxPool2d::validate() const {
  checkImagePool(*this);
}

Shape AveragePool2d::outputShape(const Shape& input) const {
  return imageOf(imageShape(PoolKind::Average, *this, input.prepend(1)));
}
std::unique_ptr<ModuleProgram> AveragePool2d::compile(const ModuleBinding& binding, Context& context) const {
  return compilePool(imageShape(PoolKind::Average, *this, binding.input()), binding, context);
}
void AveragePool2d::fields(Fields& f) {
  visitImagePool(*this, f);
}
void AveragePool2d::validate() const {
  checkImagePool(*this);
}

Shape GlobalPool2d::outputShape(const Shape& input) const {
  return imageOf(globalShape(kind, input.prepend(1)));
}
std::unique_ptr<ModuleProgram> GlobalPool2d::compile(const ModuleBinding& binding, Context& context) const {
  return compilePool(globalShape(kind, binding.input()), binding, context);
}
void GlobalPool2d::fields(Fields& f) {
  f.field("name", name, detail::kNameField);
  f.field("kind", kind, "which number stands for a channel");
}

}  // namespace muster
