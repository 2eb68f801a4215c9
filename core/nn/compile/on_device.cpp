#include "muster/core/nn/compile/on_device.h"

#include "muster/core/base/detail/log_scope.h"

namespace muster::detail {
namespace {

/// A tensor of the network and its copy on the layer's device.
class Twins {
 public:
  explicit Twins(Device device) : device_(device) {}
  /// Copies a tensor to the layer's device and keeps the pair. @return the copy.
  Tensor add(const Tensor& here) {
    here_.push_back(here);
    there_.push_back(copyTo(here, device_));
    return there_.back();
  }
  void fetch() {
    for (std::size_t i = 0; i < here_.size(); ++i) copy(here_[i], there_[i]);
  }
  void bringBack() {
    for (std::size_t i = 0; i < here_.size(); ++i) copy(there_[i], here_[i]);
  }

 private:
  Device device_;
  std::vector<Tensor> here_, there_;
};

class OnDeviceProgram final : public VertexProgram {
 public:
  OnDeviceProgram(const Module& module, ModuleBinding binding, Context& context, Context& layerContext)
      : context_(context),
        layerContext_(layerContext),
        parameters_(layerContext.device()),
        gradients_(layerContext.device()),
        statistics_(layerContext.device()) {
    for (auto& tensor : binding.parameters) tensor = parameters_.add(tensor);
    for (auto& tensor : binding.gradients) tensor = gradients_.add(tensor);
    for (auto& tensor : binding.statistics) tensor = statistics_.add(tensor);
    program_ = compileHere(module, binding, layerContext);
    for (const auto& input : binding.inputs) {
      x_.push_back(like(input.shape, program_->inputLayout()));
      gradX_.push_back(binding.training ? like(input.shape, program_->inputLayout()) : Tensor());
    }
    std::vector<Shape> examples;
    for (const auto& input : binding.inputs) examples.push_back(input.shape.dropFirst());
    const Shape output = module.outputShape(examples).prepend(binding.input()[0]);
    y_ = like(output, program_->outputLayout());
    if (binding.training) gradY_ = like(output, program_->outputLayout());
  }

  Layout inputLayout() const override { return program_->inputLayout(); }
  Layout outputLayout() const override { return program_->outputLayout(); }
  BackwardReads backwardReads() const override {
    return {.input = false, .output = false};
  }  // copies are used

  void forwardAll(std::span<const Tensor> x, Tensor& y, const StepInfo& info) override {
    context_.synchronize();
    layerContext_.setPeers(context_.peers());  // the peers may change between steps
    parameters_.fetch();
    statistics_.fetch();
    for (std::size_t i = 0; i < x.size(); ++i) copy(x[i], x_[i]);
    if (program_->aliasesInput())
      copy(x_.front().reshape(y_.shape()), y_);
    else
      program_->forwardAll(x_, y_, infoThere(info));
    layerContext_.synchronize();
    statistics_.bringBack();
    copy(y_, y);
  }

  void backwardAll(std::span<const Tensor>, const Tensor&, Tensor& gradY, std::span<Tensor> gradX,
                   const StepInfo& info) override {
    context_.synchronize();
    layerContext_.setPeers(context_.peers());
    copy(gradY, gradY_);
    const bool passes = program_->passesGradient();
    wanted_.resize(passes ? 0 : gradX.size());
    for (std::size_t i = 0; i < wanted_.size(); ++i) wanted_[i] = gradX[i].defined() ? gradX_[i] : Tensor();
    if (!program_->aliasesInput()) program_->backwardAll(x_, y_, gradY_, wanted_, infoThere(info));
    layerContext_.synchronize();
    gradients_.bringBack();
    const bool handsOn = passes || program_->aliasesInput();
    for (std::size_t i = 0; i < gradX.size(); ++i)
      if (gradX[i].defined()) copy(handsOn ? gradY_.reshape(gradX[i].shape()) : gradX_[i], gradX[i]);
  }

 private:
  Tensor like(const Shape& shape, Layout layout) const {
    return Tensor::zeros(shape, DType::Float32, layerContext_.device(), layout);
  }

  /// The step's information with the mask on the layer's device.
  StepInfo infoThere(const StepInfo& info) {
    StepInfo there = info;
    if (info.sequenceMask == nullptr) return there;
    if (!mask_.defined() || mask_.shape() != info.sequenceMask->shape())
      mask_ = copyTo(*info.sequenceMask, layerContext_.device());
    else
      copy(*info.sequenceMask, mask_);
    there.sequenceMask = &mask_;
    return there;
  }

  Context& context_;
  Context& layerContext_;
  Twins parameters_, gradients_, statistics_;
  std::unique_ptr<VertexProgram> program_;
  std::vector<Tensor> x_, gradX_, wanted_;
  Tensor y_, gradY_, mask_;
};

}  // namespace

std::unique_ptr<VertexProgram> compileHere(const Module& module, const ModuleBinding& binding,
                                           Context& context) {
  const LogScope scope(binding.name);
  auto program = module.compile(binding, context);
  require(program != nullptr, "layer {} ({}): compile() returned no program", binding.name, module.type());
  return program;
}

std::unique_ptr<VertexProgram> compileOnDevice(const Module& module, const ModuleBinding& binding,
                                               Context& context, Context& layerContext) {
  return std::make_unique<OnDeviceProgram>(module, binding, context, layerContext);
}

}  // namespace muster::detail
