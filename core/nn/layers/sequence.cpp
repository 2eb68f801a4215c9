#include "muster/core/nn/layers/sequence.h"

#include "muster/core/base/error.h"
#include "muster/core/nn/layers/field_descriptions.h"
#include "muster/core/ops/sequence.h"

namespace muster {
namespace {

/// Reduces each sequence to one row.
class ReductionProgram final : public ModuleProgram {
 public:
  using Forward = void (*)(const Tensor& x, const Tensor& mask, Tensor& y, Context& context);
  using Backward = void (*)(const Tensor& gradY, const Tensor& mask, Tensor& gradX, Context& context);

  ReductionProgram(Forward forwardOp, Backward backwardOp, Context& context)
      : forward_(forwardOp), backward_(backwardOp), context_(context) {}
  BackwardReads backwardReads() const override { return {.input = false, .output = false}; }
  bool recordable() const override { return true; }
  void forward(const Tensor& x, Tensor& y, const StepInfo& info) override {
    forward_(x, sequenceMaskOf(info), y, context_);
  }
  void backward(const Tensor&, const Tensor&, Tensor& gradY, Tensor& gradX, const StepInfo& info) override {
    if (gradX.defined()) backward_(gradY, sequenceMaskOf(info), gradX, context_);
  }

 private:
  Forward forward_;
  Backward backward_;
  Context& context_;
};

}  // namespace

void requireSequenceInput(std::string_view type, const Shape& input) {
  require(input.rank() == 2 && input[0] > 0 && input[1] > 0,
          "{}: expected a sequence [T, F] of at least one step, got {}", type, input.toString());
}

Tensor sequenceAsImage(const Tensor& sequence) {
  const Shape& s = sequence.shape();
  return Tensor::view(sequence.raw(), {s[0], s[2], 1, s[1]}, sequence.dtype(), sequence.device(),
                      Layout::ChannelsLast);
}

Shape LastStep::outputShape(const Shape& input) const {
  requireSequenceInput(kType, input);
  return {input[1]};
}

std::unique_ptr<ModuleProgram> LastStep::compile(const ModuleBinding&, Context& context) const {
  return std::make_unique<ReductionProgram>(lastStepForward, lastStepBackward, context);
}

void LastStep::fields(Fields& f) {
  f.field("name", name, detail::kNameField);
}

Shape MeanOverTime::outputShape(const Shape& input) const {
  requireSequenceInput(kType, input);
  return {input[1]};
}

std::unique_ptr<ModuleProgram> MeanOverTime::compile(const ModuleBinding&, Context& context) const {
  return std::make_unique<ReductionProgram>(meanOverTimeForward, meanOverTimeBackward, context);
}

void MeanOverTime::fields(Fields& f) {
  f.field("name", name, detail::kNameField);
}

}  // namespace muster
