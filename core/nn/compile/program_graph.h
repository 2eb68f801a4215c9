#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "muster/core/nn/compile/network_plan.h"

namespace muster::detail {

/// An input of a network or the output of a node, for one batch size.
struct ProgramValue {
  Shape shape;
  Layout layout = Layout::RowMajor;
  DType dtype = DType::Float32;
  Tensor value = {}, gradient = {};
  bool learned = false;  // trainable parameters come before it
};

/// An input of a node.
struct ProgramInput {
  std::size_t value;
  bool writes = false;     // the first contribution to the value's gradient: writes; the others add
  bool handsOver = false;  // the input's gradient is the output's, in the same memory
  Tensor scratch = {};     // holds a contribution before it is added
};

/// A compiled module and its inputs.
struct ProgramNode {
  std::unique_ptr<VertexProgram> program;
  std::string name = "reorder";  // of the layer
  std::vector<ProgramInput> inputs = {};
  std::size_t output = 0;
  bool runsBackward = false;               // it, or a node before it, has trainable parameters
  bool asInEvaluation = false;             // frozen
  bool usesSideStream = false;             // part of its backward pass may run on the side stream
  std::vector<Tensor> x = {}, gradX = {};  // the program's arguments

  /// Whether each input's gradient is the output's gradient.
  bool passesGradient() const { return program->aliasesInput() || program->passesGradient(); }
};

/// A network's modules compiled for one batch size and one context, with reorders between different layouts.
struct ProgramGraph {
  std::map<Device, std::unique_ptr<Context>> layerContexts = {};  // of layers on other devices
  std::size_t inputs = 0;                                         // the first values
  std::vector<ProgramValue> values = {};
  std::vector<ProgramNode> nodes = {};  // in the order of execution
  std::vector<std::size_t> outputs = {};
};

/// Compiles the modules. The graph's values have no memory yet.
/// @throws InvalidArgument naming a layer that cannot be on its device.
ProgramGraph compileGraph(const NetworkPlan& plan, std::int64_t batch, bool training, Context& context);

}  // namespace muster::detail
