#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "muster/core/nn/detail/network_plan.h"
#include "muster/core/nn/model.h"

namespace muster::detail {

/// A network compiled for one batch size and one context. All memory is planned here: activations share a
/// place where none of them is needed any more, and so do gradients. Running it allocates nothing.
class NetworkProgram {
 public:
  NetworkProgram(const NetworkPlan& plan, std::int64_t batch, bool training, Context& context);

  /// Runs the network. @param features  [input] [N, ...].
  void forward(std::span<const Tensor* const> features, const StepInfo& info);
  /// What output `index` came to, RowMajor [N, ...].
  const Tensor& output(std::size_t index) const { return values_[outputs_[index]].value; }

  /// Where the derivative by an output is written before `backward`; the shape of the output.
  Tensor& outputGradient(std::size_t index) { return values_[outputs_[index]].gradient; }
  /// Behind `forward` with the same `info`: overwrites the gradients of all parameters that need them, last
  /// node first; those before the first parameter to be learned only with
  /// `withInputGradient`.
  void backward(const StepInfo& info, bool withInputGradient = false);
  /// The derivative by an input, in the layout that the first to read it wants.
  const Tensor& inputGradient(std::size_t index) const { return values_[index].gradient; }

  /// Whether a step may be recorded, see `VertexProgram::recordable`.
  bool recordable() const;

  /// Bytes of activations and gradients.
  std::size_t bytes() const { return activations_.bytes() + gradients_.bytes(); }

 private:
  struct Value {
    Shape shape;
    Layout layout = Layout::RowMajor;
    DType dtype = DType::Float32;
    Tensor value = {}, gradient = {};
    bool learned = false;  // parameters to be learned come before it
  };
  struct Slot {  // a node's input
    std::size_t value;
    bool writes = false;     // the first to contribute to the value's gradient: writes, others add
    bool handsOver = false;  // the gradient is that of the node's output, in the same memory
    Tensor scratch = {};     // where one that adds computes its share first
  };
  struct Node {
    std::unique_ptr<VertexProgram> program;
    std::vector<Slot> inputs = {};
    std::size_t output = 0;
    bool runsBackward = false;               // it, or something before it, has parameters to learn
    bool asInEvaluation = false;             // frozen
    bool usesSideStream = false;             // in its backward pass
    std::vector<Tensor> x = {}, gradX = {};  // as the program takes them
  };

  void addNode(const NetworkNode& node, std::span<const std::size_t> values, bool training);
  void append(Node node, const Shape& output);
  std::unique_ptr<VertexProgram> compile(const NetworkNode& node, const ModuleBinding& binding);
  std::size_t inLayout(std::size_t value, Layout layout);
  void orderContributions();
  void planValues(bool training);
  void chooseSideStream();
  void planGradients();
  void bindNodes(bool training);
  void addShares(Node& node, bool withInputGradient);
  Tensor viewOf(const Value& value, const Tensor& memory, std::size_t offset) const;

  Context& context_;
  std::map<Device, std::unique_ptr<Context>> layerContexts_;  // of layers on devices of their own
  std::size_t inputs_;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<std::size_t> outputs_;
  std::vector<bool> inputRead_;     // [input] its layout is settled
  Tensor activations_, gradients_;  // bytes
};

}  // namespace muster::detail
