#include "muster/core/nn/layers/pool1d.h"

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/nn/layers/field_descriptions.h"
#include "muster/core/nn/layers/function_program.h"
#include "muster/core/nn/layers/sequence.h"
#include "muster/core/ops/detail/extents.h"
#include "muster/core/ops/pool2d.h"

namespace muster {
namespace {

/// @param input  of a batch.
template <typename Pool>
Pool2dShape sequenceShape(PoolKind kind, const Pool& layer, const Shape& input) {
  requireSequenceInput(Pool::kType, input.dropFirst());
  detail::requireExtents(Pool::kType, {input[1], layer.kernel, layer.stride, layer.padding});
  require(layer.kernel <= input[1] + 2 * layer.padding, "{}: a kernel of {} does not fit {} with padding {}",
          Pool::kType, layer.kernel, plural(input[1], "step"), layer.padding);
  return {.kind = kind,
          .batch = input[0],
          .channels = input[2],
          .height = 1,
          .width = input[1],
          .kernel = {1, layer.kernel},
          .stride = {1, layer.stride == 0 ? layer.kernel : layer.stride},
          .padding = {0, layer.padding}};
}

/// Pooling of images, run on sequences.
std::unique_ptr<ModuleProgram> compileOnSequences(const Pool2dShape& shape, Context& context) {
  const std::shared_ptr<Pool2dPlan> plan = planPool2d(shape, Layout::ChannelsLast, context);
  return functionProgram(
      Layout::RowMajor,
      [plan](const Tensor& x, Tensor& y) {
        Tensor output = sequenceAsImage(y);
        plan->forward(sequenceAsImage(x), output);
      },
      [plan](const Tensor& gradY, Tensor& gradX) {
        Tensor gradInput = sequenceAsImage(gradX);
        plan->backward(sequenceAsImage(gradY), gradInput);
      });
}

Shape sequenceOf(const Pool2dShape& shape) {
  return {shape.output()[3], shape.channels};
}

template <typename Pool>
void visitSequencePool(Pool& layer, Fields& f) {
  f.field("name", layer.name, detail::kNameField);
  f.field("kernel", layer.kernel, "steps of a window", "[1, )");
  f.field("stride", layer.stride, "step from one window to the next; 0: the kernel's size", "[0, )");
  f.field("padding", layer.padding, "steps before and after the sequence: zeros in a mean, never the maximum",
          "[0, )");
}

template <typename Pool>
void checkSequencePool(const Pool& layer) {
  require(layer.kernel >= 1, "{}: kernel must be at least 1, got {}", Pool::kType, layer.kernel);
  require(layer.stride >= 0, "{}: stride cannot be negative, got {}", Pool::kType, layer.stride);
  require(layer.padding >= 0 && layer.padding <= layer.kernel / 2,
          "{}: padding must be between 0 and half the kernel, got {} with kernel {}", Pool::kType,
          layer.padding, layer.kernel);
}

}  // namespace

Shape MaxPool1d::outputShape(const Shape& input) const {
  return sequenceOf(sequenceShape(PoolKind::Max, *this, input.prepend(1)));
}
std::unique_ptr<ModuleProgram> MaxPool1d::compile(const ModuleBinding& binding, Context& context) const {
  return compileOnSequences(sequenceShape(PoolKind::Max, *this, binding.input()), context);
}
void MaxPool1d::fields(Fields& f) {
  visitSequencePool(*this, f);
}
void MaxPool1d::validate() const {
  checkSequencePool(*this);
}

Shape AveragePool1d::outputShape(const Shape& input) const {
  return sequenceOf(sequenceShape(PoolKind::Average, *this, input.prepend(1)));
}
std::unique_ptr<ModuleProgram> AveragePool1d::compile(const ModuleBinding& binding, Context& context) const {
  return compileOnSequences(sequenceShape(PoolKind::Average, *this, binding.input()), context);
}
void AveragePool1d::fields(Fields& f) {
  visitSequencePool(*this, f);
}
void AveragePool1d::validate() const {
  checkSequencePool(*this);
}

}  // namespace muster
