#include "muster/core/nn/layers/conv1d.h"

#include "muster/core/base/plural.h"
#include "muster/core/nn/layers/conv2d_program.h"
#include "muster/core/nn/layers/field_descriptions.h"
#include "muster/core/nn/layers/sequence.h"
#include "muster/core/ops/detail/extents.h"
#include "muster/core/ops/pad2d.h"

namespace muster {
namespace {

/// Steps of zeros before the sequence.
std::int64_t stepsBefore(const Conv1d& layer) {
  return layer.causal ? layer.dilation * (layer.kernel - 1) : layer.padding;
}

/// The two-dimensional convolution on these images. For a causal one the input already includes the zeros.
Conv2dShape planShape(const Conv1d& layer, const Shape& input) {
  require(input.rank() == 3 && input[1] > 0 && input[2] > 0,
          "conv1d: expected a sequence [T, F] of at least one step, got {}", input.dropFirst().toString());
  require(input[2] % layer.groups == 0 && layer.outChannels % layer.groups == 0,
          "conv1d: {} groups do not divide {} features and {} output channels", layer.groups, input[2],
          layer.outChannels);
  detail::requireExtents("conv1d", {input[1], input[2], layer.outChannels, layer.kernel, layer.stride,
                                    layer.dilation, layer.padding});
  const std::int64_t steps = input[1] + (layer.causal ? stepsBefore(layer) : 2 * layer.padding);
  require(layer.dilation * (layer.kernel - 1) < steps,
          "conv1d: a kernel of {} with dilation {} does not fit {} with padding {}", layer.kernel,
          layer.dilation, plural(input[1], "step"), layer.padding);
  return {.batch = input[0],
          .inChannels = input[2],
          .height = 1,
          .width = layer.causal ? steps : input[1],
          .outChannels = layer.outChannels,
          .kernel = {1, layer.kernel},
          .stride = {1, layer.stride},
          .padding = {0, layer.padding},
          .dilation = {1, layer.dilation},
          .groups = layer.groups};
}

/// A two-dimensional convolution, run on sequences.
class Conv1dProgram final : public ModuleProgram {
 public:
  /// @param before  steps of zeros to insert before each sequence; if 0, the sequence is viewed without a
  ///         copy.
  Conv1dProgram(std::unique_ptr<ModuleProgram> images, const Conv2dShape& shape, std::int64_t before,
                bool training, Context& context)
      : images_(std::move(images)), padding_{0, 0, before, 0}, context_(context) {
    const auto image = [&] {
      return Tensor::zeros(shape.input(), DType::Float32, context.device(), Layout::ChannelsLast);
    };
    if (before > 0) padded_ = image();
    if (before > 0 && training) gradPadded_ = image();
  }

  bool recordable() const override { return images_->recordable(); }
  bool readsGradientLate() const override { return images_->readsGradientLate(); }
  BackwardReads backwardReads() const override {
    auto reads = images_->backwardReads();
    if (padded_.defined()) reads.input = false;  // the backward pass reads the padded copy
    return reads;
  }

  void forward(const Tensor& x, Tensor& y, const StepInfo& info) override {
    Tensor output = sequenceAsImage(y);
    if (!padded_.defined()) return images_->forward(sequenceAsImage(x), output, info);
    pad2d(sequenceAsImage(x), padding_, padded_, context_);
    images_->forward(padded_, output, info);
  }

  void backward(const Tensor& x, const Tensor& y, Tensor& gradY, Tensor& gradX,
                const StepInfo& info) override {
    Tensor gradOutput = sequenceAsImage(gradY),
           gradInput = gradX.defined() ? sequenceAsImage(gradX) : Tensor();
    const Tensor output = sequenceAsImage(y);
    if (!padded_.defined()) return images_->backward(sequenceAsImage(x), output, gradOutput, gradInput, info);
    images_->backward(padded_, output, gradOutput, gradX.defined() ? gradPadded_ : gradInput, info);
    if (gradX.defined()) pad2dBackward(gradPadded_, padding_, gradInput, context_);
  }

 private:
  std::unique_ptr<ModuleProgram> images_;
  Padding2d padding_;
  Context& context_;
  Tensor padded_, gradPadded_;  // the sequences with zeros before them
};

}  // namespace

PaddingUse Conv1d::paddingUse() const {
  if (kernel == 1 && stride == 1 && padding == 0) return PaddingUse::PerStep;
  return causal && stride == 1 ? PaddingUse::MixesLater : PaddingUse::Mixes;
}

Shape Conv1d::outputShape(const Shape& input) const {
  return {planShape(*this, input.prepend(1)).output()[3], outChannels};
}

std::vector<ParameterSpec> Conv1d::parameters(const Shape& input) const {
  const std::int64_t in = planShape(*this, input.prepend(1)).inChannels / groups;
  return linearParameters({outChannels, in, kernel}, outChannels, in * kernel, outChannels / groups * kernel,
                          init, bias);
}

std::unique_ptr<ModuleProgram> Conv1d::compile(const ModuleBinding& binding, Context& context) const {
  const auto shape = planShape(*this, binding.input());
  auto plan = planConv2d(shape, context, Conv2dChoice::ChannelsLast);
  ModuleBinding images = binding;
  images.parameters[0] = binding.parameters[0].reshape(shape.weight());
  if (binding.training) images.gradients[0] = binding.gradients[0].reshape(shape.weight());
  FusedActivation fused(activation, shape.output(), Layout::ChannelsLast, binding.training, context.device());
  return std::make_unique<Conv1dProgram>(
      std::make_unique<Conv2dProgram>(std::move(plan), std::move(fused), images, context), shape,
      causal ? stepsBefore(*this) : 0, binding.training, context);
}

void Conv1d::fields(Fields& f) {
  f.field("name", name, detail::kNameField);
  f.field("outChannels", outChannels, "number of outputs at each step", "[1, )");
  f.field("kernel", kernel, "steps that it sees", "[1, )");
  f.field("stride", stride, "step from one window to the next", "[1, )");
  f.field("padding", padding, "steps of zeros before and after the sequence", "[0, )");
  f.field("dilation", dilation, "distance between the steps that it sees", "[1, )");
  f.field("groups", groups,
          "divides inputs and outputs; each group of outputs sees its own group of inputs only", "[1, )");
  f.field("causal", causal, "a step depends on itself and earlier ones only");
  f.field("activation", activation, detail::kActivationField);
  f.field("init", init, detail::kInitField);
  f.field("bias", bias, detail::kBiasField);
}

void Conv1d::validate() const {
  require(outChannels >= 1, "conv1d: outChannels must be at least 1, got {}", outChannels);
  require(groups >= 1 && outChannels % groups == 0,
          "conv1d: groups must be at least 1 and divide outChannels, got {} and {}", groups, outChannels);
  require(kernel >= 1 && stride >= 1 && dilation >= 1,
          "conv1d: kernel, stride and dilation must be at least 1, got {}, {} and {}", kernel, stride,
          dilation);
  require(padding >= 0, "conv1d: padding cannot be negative, got {}", padding);
  require(!causal || padding == 0,
          "conv1d: a causal convolution has its own padding, so padding must be 0, got {}", padding);
  requireElementwise(kType, activation);
  init.validate();
}

}  // namespace muster
