#pragma once

#include <cstdint>
#include <span>

#include "muster/core/nn/compile/program_graph.h"
#include "muster/core/nn/compile/program_memory.h"

namespace muster::detail {

/// A network compiled for one batch size and one context. All memory is planned at construction; a run
/// allocates nothing.
class NetworkProgram {
 public:
  NetworkProgram(const NetworkPlan& plan, std::int64_t batch, bool training, Context& context)
      : context_(context),
        graph_(compileGraph(plan, batch, training, context)),
        memory_(placeValues(graph_, training, context)) {}

  /// Runs the network. @param features  [input] [N, ...].
  void forward(std::span<const Tensor* const> features, const StepInfo& info);
  /// The value of output `index`, RowMajor [N, ...].
  const Tensor& output(std::size_t index) const { return graph_.values[graph_.outputs[index]].value; }

  /// The gradient with respect to output `index`, in its shape. Write it before `backward`.
  Tensor& outputGradient(std::size_t index) { return graph_.values[graph_.outputs[index]].gradient; }
  /// After `forward` with the same `info`: overwrites the gradients of all parameters that are not frozen,
  /// last node first. Nodes before the first such parameter run only with `withInputGradient`.
  void backward(const StepInfo& info, bool withInputGradient = false);
  /// The gradient with respect to an input, in the layout of its first reader.
  const Tensor& inputGradient(std::size_t index) const { return graph_.values[index].gradient; }

  /// Whether a step may be recorded, see `VertexProgram::recordable`.
  bool recordable() const;

  /// Bytes of activations and gradients.
  std::size_t bytes() const { return memory_.activations.bytes() + memory_.gradients.bytes(); }

 private:
  void addShares(ProgramNode& node, bool withInputGradient);

  Context& context_;
  ProgramGraph graph_;
  ProgramMemory memory_;
};

}  // namespace muster::detail
