#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/interop/onnx/onnx_layer.h"
#include "muster/core/nn/compile/network_plan.h"

namespace muster::detail {

/// The ONNX graph of a network while it is written.
class OnnxGraph {
 public:
  /// @param tensors  all parameters and statistics on the CPU, by their names.
  /// @param lengths  whether the graph has the input `lengths`.
  /// @param steps  the length of the network's sequences; 0 if it has none.
  OnnxGraph(std::map<std::string, Tensor, std::less<>> tensors, bool lengths, std::int64_t steps)
      : tensors_(std::move(tensors)), hasLengths_(lengths), steps_(steps) {}

  /// A dimension's symbol, or its size if the symbol is empty.
  struct Dimension {
    std::int64_t size = 0;
    std::string symbol = {};
  };
  void addInput(const std::string& name, DType dtype, std::span<const Dimension> dimensions);
  void addOutput(const std::string& name, const std::string& value, std::span<const Dimension> dimensions);
  /// Adds the input `lengths` if a layer has asked for it. @throws InvalidArgument if none has.
  void finishLengths();

  const Tensor& tensor(const std::string& name) const;
  bool hasTensor(const std::string& name) const { return tensors_.contains(name); }
  /// The constant of a tensor of the network; added at the first call.
  std::string parameter(const std::string& name);
  /// @return the constant's name: `wanted`, with a number if that is taken.
  std::string constant(const std::string& wanted, const Tensor& values);
  std::vector<std::string> add(const std::string& prefix, std::string_view op,
                               const std::vector<std::string>& reads, std::size_t outputs,
                               const OnnxAttributes& attributes);

  bool hasLengths() const { return hasLengths_; }
  std::int64_t steps() const { return steps_; }
  std::string lengths();
  /// The mask of real steps, shared by all layers. @param sequence  a value [N, T, ...].
  std::string realSteps(const std::string& sequence);

  onnx::GraphProto& proto() { return graph_; }

 private:
  std::string unique(const std::string& wanted);

  onnx::GraphProto graph_;
  std::map<std::string, Tensor, std::less<>> tensors_;
  bool hasLengths_, usesLengths_ = false;
  std::int64_t steps_;
  std::string realSteps_;  // empty until a layer needs it
  std::set<std::string, std::less<>> names_{"lengths"};
  std::set<std::string, std::less<>> parameters_;
};

/// The rule of a layer type. @throws InvalidArgument if there is none.
OnnxRule onnxRule(std::string_view type);

using OnnxRules = std::map<std::string, OnnxRule, std::less<>>;

template <typename T, typename Rule>
void addTo(OnnxRules& rules, Rule rule) {
  rules.emplace(T::kType, onnxRuleOf<T>(rule));
}

// The rules of the library's layers, by subject.
void addOnnxImageRules(OnnxRules& rules);
void addOnnxSequenceRules(OnnxRules& rules);
void addOnnxOtherRules(OnnxRules& rules);

}  // namespace muster::detail
