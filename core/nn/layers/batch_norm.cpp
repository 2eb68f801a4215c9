#include "muster/core/nn/layers/batch_norm.h"

#include <cmath>

#include "muster/core/base/error.h"
#include "muster/core/nn/layers/field_descriptions.h"
#include "muster/core/nn/layers/fused_activation.h"

namespace muster {
namespace {

bool fusedInPlan(Activation activation) {
  return activation == Activation::Identity || activation == Activation::ReLU;
}

class BatchNormProgram final : public ModuleProgram {
 public:
  /// @param fused  the activation to apply after the plan.
  BatchNormProgram(const BatchNorm& options, const BatchNormShape& shape, Layout layout,
                   FusedActivation fused, const ModuleBinding& binding, Context& context)
      : options_(options),
        name_(binding.name),
        context_(context),
        plan_(planBatchNorm(shape, layout, context)),
        values_(static_cast<double>(shape.valuesPerChannel())),
        activation_(std::move(fused)),
        mean_(binding.statistics[0]),
        variance_(binding.statistics[1]),
        sums_(Tensor::zeros({2, shape.channels()}, DType::Float64, context.device())),
        exchanged_(Tensor::zeros({2 * shape.channels() + 1}, DType::Float64)) {
    if (!options_.affine) return;
    gamma_ = binding.parameters[0];
    beta_ = binding.parameters[1];
    if (!binding.training) return;
    gradGamma_ = binding.gradients[0];
    gradBeta_ = binding.gradients[1];
  }

  Layout inputLayout() const override { return plan_->layout(); }
  Layout outputLayout() const override { return plan_->layout(); }

  /// The ReLU's derivative is recomputed from x.
  BackwardReads backwardReads() const override {
    return {.input = true, .output = activation_.readsOutput()};
  }

  bool gradientInPlace() const override { return plan_->gradientInPlace(); }

  /// A synchronised layer reads sums and the loss's weight on the host.
  bool recordable() const override { return !options_.synchronised; }

  void forward(const Tensor& x, Tensor& y, const StepInfo& info) override {
    inTraining_ = info.training;
    if (info.training) {
      plan_->sums(x, sums_);
      count_ = values_;
      if (Peers* peers = peersOrNone()) count_ = sumOverPeers(*peers, 1, values_);
      if (count_ < 2)
        throw InvalidArgument(fmt::format(
            "{}: in training it needs more than one value per channel, and {} has one; another batch "
            "size leaves no single example for the last batch",
            name_, x.shape().toString()));
      plan_->normalise(x, sums_, count_, gamma_, beta_, activation_.operationOutput(y));
      plan_->moveStatistics(info.replaceStatistics ? 1 : options_.momentum, mean_, variance_);
    } else {
      plan_->normaliseBy(x, mean_, variance_, gamma_, beta_, activation_.operationOutput(y));
    }
    activation_.forward(y, context_);
  }

  void backward(const Tensor& x, const Tensor& y, Tensor& gradY, Tensor& gradX,
                const StepInfo& info) override {
    activation_.backward(y, gradY, context_);
    plan_->gradientSums(x, gradY, sums_, gradGamma_, gradBeta_);
    if (!gradX.defined()) return;
    if (!inTraining_) return plan_->gradientBy(x, gradY, gradX);
    if (Peers* peers = peersOrNone()) return gradientOfAll(*peers, x, gradY, gradX, info.lossWeight);
    plan_->gradient(x, gradY, sums_, count_, gradX);
  }

 private:
  Peers* peersOrNone() const { return options_.synchronised ? context_.peers() : nullptr; }

  /// Replaces `sums_` by the sum over all workers of `weight` times their sums. @return the sum of all
  /// workers' `count`.
  double sumOverPeers(Peers& peers, double weight, double count) {
    Tensor here = exchanged_.slice(0, sums_.shape());
    copy(sums_, here, context_);
    context_.synchronize();
    for (double& sum : here.span<double>()) sum *= weight;
    double& together = exchanged_.data<double>()[exchanged_.elements() - 1];
    together = count;
    peers.sum(exchanged_.span<double>());
    copy(here, sums_, context_);
    return together;
  }

  /// gradY is the gradient of this worker's mean loss, which has `weight` in the loss of all workers. So the
  /// sums are weighted, and the result is scaled back to this worker's loss.
  void gradientOfAll(Peers& peers, const Tensor& x, const Tensor& gradY, Tensor& gradX, double weight) {
    sumOverPeers(peers, weight, 0);
    if (weight > 0)
      plan_->gradient(x, gradY, sums_, count_ * weight, gradX);
    else
      setZero(gradX, context_);  // a worker of weight 0 contributes no gradient
  }

  BatchNorm options_;
  std::string name_;
  Context& context_;
  std::unique_ptr<BatchNormPlan> plan_;
  double values_;  // values per channel in this worker's batch
  FusedActivation activation_;
  Tensor gamma_, beta_, gradGamma_, gradBeta_;
  Tensor mean_, variance_;  // running
  Tensor sums_;             // float64 [2, C]
  Tensor exchanged_;        // float64 [2 C + 1] on the CPU: the sums, and the number of their values
  bool inTraining_ = true;  // whether the last forward pass was in training
  double count_ = 0;        // values per channel in that pass's statistics
};

}  // namespace

Shape BatchNorm::outputShape(const Shape& input) const {
  require(input.rank() == 1 || input.rank() == 3, "batchnorm: expected an input [C] or [C, H, W], got {}",
          input.toString());
  return input;
}

std::vector<ParameterSpec> BatchNorm::parameters(const Shape& input) const {
  if (!affine) return {};
  return {{.name = "gamma", .shape = {input[0]}, .init = Init::constant(1), .regularised = false},
          {.name = "beta", .shape = {input[0]}, .regularised = false}};
}

std::vector<ParameterSpec> BatchNorm::statistics(const Shape& input) const {
  return {{.name = "mean", .shape = {input[0]}, .merge = MergeRule::Moments},
          {.name = "variance", .shape = {input[0]}, .init = Init::constant(1), .merge = MergeRule::Moments}};
}

std::unique_ptr<ModuleProgram> BatchNorm::compile(const ModuleBinding& binding, Context& context) const {
  const bool inPlan = fusedInPlan(activation);
  const BatchNormShape shape{
      .input = binding.input(), .epsilon = epsilon, .activation = inPlan ? activation : Activation::Identity};
  const auto layout = activation == Activation::Softmax ? Layout::RowMajor : binding.offered();
  FusedActivation fused(inPlan ? Activation::Identity : activation, shape.input, layout, binding.training,
                        context.device());
  return std::make_unique<BatchNormProgram>(*this, shape, layout, std::move(fused), binding, context);
}

void BatchNorm::fields(Fields& f) {
  f.field("name", name, detail::kNameField);
  f.field("momentum", momentum, "weight of the new batch in the running statistics, above 0, at most 1",
          "(0, 1]");
  f.field("epsilon", epsilon, "added to the variance", "(0, )");
  f.field("activation", activation, detail::kActivationField);
  f.field("affine", affine, "has the trained factors gamma and summands beta");
  f.field("synchronised", synchronised, "normalises over the batches of all workers in the step");
}

void BatchNorm::validate() const {
  require(momentum > 0 && momentum <= 1, "batchnorm: momentum must be above 0 and at most 1, got {}",
          momentum);
  require(std::isfinite(epsilon) && epsilon > 0, "batchnorm: epsilon must be finite and above 0, got {}",
          epsilon);
}

}  // namespace muster
