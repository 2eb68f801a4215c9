#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "muster/core/nn/layer.h"

namespace muster {

namespace detail {
class OnnxGraph;
struct NetworkNode;
}  // namespace detail

/// Attributes of an ONNX operator: integers, numbers (float32 there), strings, lists of integers.
using OnnxAttribute = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>>;
/// By their names.
using OnnxAttributes = std::vector<std::pair<std::string, OnnxAttribute>>;

/// One layer of a network while it is written into an ONNX graph. The rule of its type adds operators and
/// returns the name of the value that is the layer's output. Values are known by their names and have the
/// batch as their first dimension; shapes here are without it.
class OnnxLayer {
 public:
  OnnxLayer(detail::OnnxGraph& graph, const detail::NetworkNode& node, std::vector<std::string> inputs)
      : graph_(graph), node_(node), inputs_(std::move(inputs)) {}

  const std::string& name() const;
  /// The values that it reads; a layer has one.
  const std::vector<std::string>& inputs() const { return inputs_; }
  const std::string& input() const { return inputs_.front(); }
  const Shape& inputShape() const;
  const Shape& outputShape() const;

  /// A parameter or statistic on the CPU, by its name in the layer: "weight".
  Tensor values(std::string_view parameter) const;
  bool has(std::string_view parameter) const;
  /// That parameter or statistic as a constant of the graph, with its name in muster's files.
  std::string parameter(std::string_view parameter);
  /// A constant of the graph. @param name  within the layer.
  std::string constant(std::string_view name, const Tensor& values);
  std::string constant(std::string_view name, std::span<const std::int64_t> values);
  std::string constant(std::string_view name, float value);

  /// Adds an operator (opset 17). An empty name in `reads` is an input left out. @return its first output.
  std::string add(std::string_view op, const std::vector<std::string>& reads,
                  const OnnxAttributes& attributes = {});
  /// As above for an operator with several outputs.
  std::vector<std::string> addMany(std::string_view op, const std::vector<std::string>& reads,
                                   std::size_t outputs, const OnnxAttributes& attributes = {});
  /// An activation function of a value of the layer's output shape.
  std::string activation(Activation activation, const std::string& value);

  /// The lengths of the sequences, int32 [N]; empty if the model has no such input.
  std::string lengths();
  /// Which steps are real, bool [N, T]; empty without lengths. @throws InvalidArgument if the layer's input
  /// is not as long as the network's.
  std::string realSteps();

 private:
  detail::OnnxGraph& graph_;
  const detail::NetworkNode& node_;
  std::vector<std::string> inputs_;
};

namespace detail {
using OnnxRule = std::function<std::string(const Module& module, OnnxLayer& layer)>;
void addOnnxRule(std::string_view type, OnnxRule rule);
/// Visits the fields of another object of the module's type, which takes the module's values.
void copyFields(const Module& module, const std::function<void(Fields&)>& visit);

/// The rule of any module for one that takes a T.
template <typename T, typename Rule>
OnnxRule onnxRuleOf(Rule rule) {
  return [rule = std::move(rule)](const Module& module, OnnxLayer& layer) {
    T options;
    copyFields(module, [&](Fields& fields) { options.fields(fields); });
    return std::string(rule(std::as_const(options), layer));
  };
}
}  // namespace detail

/// How layers of type T are written into ONNX graphs. The rule gets a layer's options as a model file would
/// keep them, by its `fields`. A later rule for the same type replaces the earlier one, also the library's
/// own. Thread-safe.
///
/// ```cpp
/// registerOnnx<Elu>([](const Elu& elu, OnnxLayer& layer) {
///   return layer.add("Elu", {layer.input()}, {{"alpha", elu.alpha}});
/// });
/// ```
template <typename T, typename Rule>
void registerOnnx(Rule rule) {
  detail::addOnnxRule(T::kType, detail::onnxRuleOf<T>(std::move(rule)));
}

}  // namespace muster
