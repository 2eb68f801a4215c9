#include "muster/core/nn/step/network_loss.h"

#include <algorithm>
#include <type_traits>

#include "muster/core/base/error.h"
#include "muster/core/nn/step/label_values.h"
#include "muster/core/nn/step/network_batch.h"
#include "muster/core/ops/elementwise.h"

namespace muster::detail {
namespace {

constexpr const char* kOwnOnCpu =
    "network: a loss of one's own is computed on the CPU; train on CPU workers, or use one of the library's";

/// Returns the result of `call`; with several outputs, errors name the output.
template <typename Call>
std::invoke_result_t<Call> naming(const NetworkPlan& plan, const NetworkOutput& output, Call&& call) {
  try {
    return call();
  } catch (const InvalidArgument& error) {
    if (plan.outputs.size() == 1) throw;
    throw InvalidArgument(fmt::format("network: output {}: {}", output.name, error.what()));
  }
}

/// What the loss of predictions [N, ...] is divided by; 0: the sum of the mask's weights.
double divisorOf(const NetworkOutput& output, const Shape& predictions) {
  return output.head->mean == LossMean::Examples ? static_cast<double>(predictions[0]) : 0;
}

/// Adds the loss of predictions of this shape.
void add(StepScore& total, const NetworkOutput& output, const Shape& predictions, LossValue value) {
  if (const double divisor = divisorOf(output, predictions)) value.weight = divisor;
  if (value.weight != 0) total.score += output.weight * value.sum / value.weight;
  total.weight = std::max(total.weight, value.weight);
}

/// Calls `lossOf(index, labels, mask, gradient)` for each output, and scales its gradient by the output's
/// weight.
/// @param derivatives  false: the gradient is undefined.
template <typename Loss>
void forEachLoss(const NetworkPlan& plan, NetworkProgram& program, const Batch& batch, bool derivatives,
                 Context& context, Loss&& lossOf) {
  Tensor none;
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    const auto& output = plan.outputs[i];
    Tensor& gradient = derivatives ? program.outputGradient(i) : none;
    const Shape& predictions = program.output(i).shape();
    const Tensor& labels = labelsOf(plan, batch, output, predictions);
    const Tensor mask = lossMaskOf(plan, batch, output, predictions);
    naming(plan, output, [&] { lossOf(i, labels, mask, gradient); });
    if (derivatives && output.weight != 1) scale(output.weight, gradient, gradient, context);
  }
}

}  // namespace

void requireLoss(const NetworkPlan& plan) {
  requireInitialized(plan);
  for (const auto& output : plan.outputs)
    if (!output.head)
      throw InvalidArgument(fmt::format(
          "network: it has no loss, as {} is {}, not an output; run it by forward() and backward()",
          plan.outputs.size() == 1 ? "its last layer" : output.name,
          plan.nodes[output.value - plan.inputs.size()].module->type()));
}

Task taskOf(const NetworkPlan& plan) {
  if (plan.outputs.empty()) return Task::Classification;
  const auto& output = plan.outputs.front();
  if (!output.head || output.head->activation == Activation::Softmax) return Task::Classification;
  if (output.head->loss != Loss::BinaryCrossEntropy) return Task::Regression;
  return plan.shapeOf(output.value)[-1] > 1 ? Task::Labels : Task::Classification;
}

void requireLabelValues(const NetworkPlan& plan, const Batch& batch) {
  const bool several = plan.outputs.size() > 1;
  for (const auto& output : plan.outputs)
    naming(plan, output, [&] { requireLabelValues(plan, output, batch, several); });
}

StepScore lossOf(const NetworkPlan& plan, NetworkProgram& program, const Batch& batch, bool derivatives,
                 Context& context) {
  StepScore total;
  forEachLoss(plan, program, batch, derivatives, context,
              [&](std::size_t i, const Tensor& labels, const Tensor& mask, Tensor& gradient) {
                const auto& output = plan.outputs[i];
                const Tensor& predictions = program.output(i);
                const auto valueOf = [&](const auto& rule) {
                  return loss(rule, predictions, labels, mask, gradient,
                              divisorOf(output, predictions.shape()), context);
                };
                add(total, output, predictions.shape(),
                    output.head->own ? valueOf(*output.head->own) : valueOf(output.head->rule()));
              });
  return total;
}

void enqueueLosses(const NetworkPlan& plan, NetworkProgram& program, StagingSlot& slot, Context& context) {
  forEachLoss(plan, program, slot.batch(), true, context,
              [&](std::size_t i, const Tensor& labels, const Tensor& mask, Tensor& gradient) {
                const auto& head = *plan.outputs[i].head;
                if (head.own) throw InvalidArgument(kOwnOnCpu);
                lossInto(head.rule(), program.output(i), labels, mask, gradient,
                         head.mean == LossMean::Examples ? slot.examples() : Tensor(), slot.results().loss(i),
                         context);
              });
}

StepScore scoreOf(const NetworkPlan& plan, const NetworkProgram& program, const StagingSlot& slot) {
  StepScore total;
  for (std::size_t i = 0; i < plan.outputs.size(); ++i)
    naming(plan, plan.outputs[i], [&] {
      const Shape& shape = program.output(i).shape();
      add(total, plan.outputs[i], shape, lossValue(slot.results().hostLoss(i), shape));
    });
  return total;
}

std::optional<double> knownWeight(const NetworkPlan& plan, const NetworkProgram& program,
                                  const Batch& batch) {
  double weight = 0;
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    const Shape& predictions = program.output(i).shape();
    const double divisor = divisorOf(plan.outputs[i], predictions);
    if (divisor == 0 && !batch.masks.empty()) return {};
    weight =
        std::max(weight, divisor != 0 ? divisor : static_cast<double>(predictions.dropLast().elements()));
  }
  return weight;
}

}  // namespace muster::detail
