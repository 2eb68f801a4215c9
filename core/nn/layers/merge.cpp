#include "muster/core/nn/layers/merge.h"

#include "muster/core/base/error.h"
#include "muster/core/nn/layers/field_descriptions.h"
#include "muster/core/nn/layers/function_program.h"
#include "muster/core/ops/elementwise.h"

namespace muster {
namespace {

/// The dimension that -1 means.
std::int64_t axisOf(std::int64_t axis, const Shape& example, std::string_view type) {
  const std::int64_t resolved = axis >= 0 ? axis : example.rank() == 3 ? 0 : example.rank() - 1;
  require(resolved >= 0 && resolved < example.rank(), "{}: there is no dimension {} in {}", type, axis,
          example.toString());
  return resolved;
}

Shape withSize(const Shape& shape, std::int64_t axis, std::int64_t size) {
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  sizes[static_cast<std::size_t>(axis)] = size;
  return Shape(sizes);
}

class MergeProgram final : public VertexProgram {
 public:
  MergeProgram(std::int64_t axis, Context& context) : axis_(static_cast<int>(axis)), context_(context) {}
  BackwardReads backwardReads() const override { return {.input = false, .output = false}; }
  bool recordable() const override { return true; }
  void forwardAll(std::span<const Tensor> x, Tensor& y, const StepInfo&) override {
    std::int64_t at = 0;
    for (const auto& input : x) {
      copyRange(input, 0, y, at, input.shape()[axis_], axis_, context_);
      at += input.shape()[axis_];
    }
  }
  void backwardAll(std::span<const Tensor> x, const Tensor&, Tensor& gradY, std::span<Tensor> gradX,
                   const StepInfo&) override {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::int64_t size = x[i].shape()[axis_];
      if (gradX[i].defined()) copyRange(gradY, at, gradX[i], 0, size, axis_, context_);
      at += size;
    }
  }

 private:
  int axis_;  // with the batch as dimension 0
  Context& context_;
};

}  // namespace

Shape Merge::outputShape(std::span<const Shape> inputs) const {
  require(!inputs.empty(), "merge: it has no inputs");
  const Shape& first = inputs.front();
  const auto along = axisOf(axis, first, kType);
  std::int64_t size = 0;
  for (const auto& input : inputs) {
    require(input.rank() == first.rank(),
            "merge: inputs must have as many dimensions, got {} and {}; a Reshape or Flatten before it gives "
            "them",
            first.toString(), input.toString());
    require(withSize(input, along, 0) == withSize(first, along, 0),
            "merge: inputs joined along dimension {} must agree in the others, got {} and {}", along,
            first.toString(), input.toString());
    size += input[static_cast<int>(along)];
  }
  return withSize(first, along, size);
}

std::unique_ptr<VertexProgram> Merge::compile(const ModuleBinding& binding, Context& context) const {
  return std::make_unique<MergeProgram>(axisOf(axis, binding.input().dropFirst(), kType) + 1, context);
}

void Merge::fields(Fields& f) {
  f.field("name", name, detail::kNameField);
  f.field("axis", axis, "dimension without the batch; -1: the channels of images, the last one of others",
          "[-1, )");
}

void Merge::validate() const {
  require(axis >= -1, "merge: axis must be -1 or a dimension, got {}", axis);
}

Shape Subset::outputShape(const Shape& input) const {
  const auto along = axisOf(axis, input, kType);
  require(to <= input[static_cast<int>(along)], "subset: elements {} to {} are not in dimension {} of {}",
          from, to, along, input.toString());
  return withSize(input, along, to - from);
}

std::unique_ptr<ModuleProgram> Subset::compile(const ModuleBinding& binding, Context& context) const {
  const int along = static_cast<int>(axisOf(axis, binding.input().dropFirst(), kType)) +
                    1;  // with the batch as dimension 0
  return functionProgram(
      Layout::RowMajor,
      [along, begin = from, &context](const Tensor& x, Tensor& y) {
        copyRange(x, begin, y, 0, y.shape()[along], along, context);
      },
      [along, begin = from, &context](const Tensor& gradY, Tensor& gradX) {
        setZero(gradX, context);
        copyRange(gradY, 0, gradX, begin, gradY.shape()[along], along, context);
      });
}

void Subset::fields(Fields& f) {
  f.field("name", name, detail::kNameField);
  f.field("from", from, "first element", "[0, )");
  f.field("to", to, "end: the first element that is left out", "[1, )");
  f.field("axis", axis, "dimension without the batch; -1: the channels of images, the last one of others",
          "[-1, )");
}

void Subset::validate() const {
  require(from >= 0 && to > from, "subset: expected 0 <= from < to, got {} and {}", from, to);
  require(axis >= -1, "subset: axis must be -1 or a dimension, got {}", axis);
}

}  // namespace muster
