#include "muster/core/nn/detail/network_loss.h"

#include <algorithm>
#include <type_traits>

#include "muster/core/base/error.h"
#include "muster/core/nn/detail/network_batch.h"
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

void add(StepScore& total, const NetworkOutput& output, const LossValue& value) {
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

StepScore lossOf(const NetworkPlan& plan, NetworkProgram& program, const Batch& batch, bool derivatives,
                 Context& context) {
  StepScore total;
  forEachLoss(plan, program, batch, derivatives, context,
              [&](std::size_t i, const Tensor& labels, const Tensor& mask, Tensor& gradient) {
                const auto& output = plan.outputs[i];
                const auto valueOf = [&](const auto& rule) {
                  return loss(rule, program.output(i), labels, mask, gradient, 0, context);
                };
                add(total, output,
                    output.head->own ? valueOf(*output.head->own) : valueOf(output.head->rule()));
              });
  return total;
}

void enqueueLosses(const NetworkPlan& plan, NetworkProgram& program, StagingSlot& slot, Context& context) {
  forEachLoss(plan, program, slot.batch(), true, context,
              [&](std::size_t i, const Tensor& labels, const Tensor& mask, Tensor& gradient) {
                if (plan.outputs[i].head->own) throw InvalidArgument(kOwnOnCpu);
                lossInto(plan.outputs[i].head->rule(), program.output(i), labels, mask, gradient, {},
                         slot.lossNumbers(i), context);
              });
}

StepScore scoreOf(const NetworkPlan& plan, const NetworkProgram& program, const StagingSlot& slot) {
  StepScore total;
  for (std::size_t i = 0; i < plan.outputs.size(); ++i)
    naming(plan, plan.outputs[i],
           [&] { add(total, plan.outputs[i], lossValue(slot.hostLoss(i), program.output(i).shape())); });
  return total;
}

std::optional<double> knownWeight(const NetworkPlan& plan, const NetworkProgram& program,
                                  const Batch& batch) {
  if (!batch.masks.empty()) return {};
  double weight = 0;
  for (std::size_t i = 0; i < plan.outputs.size(); ++i)
    weight = std::max(weight, static_cast<double>(program.output(i).shape().dropLast().elements()));
  return weight;
}

}  // namespace muster::detail
