#include <array>

#include "muster/core/base/error.h"
#include "muster/core/interop/onnx/detail/onnx_graph.h"
#include "muster/core/nn/layers.h"

namespace muster::detail {
namespace {

using Integers = std::vector<std::int64_t>;

/// Dense and Output: rows by Gemm; the steps of sequences by MatMul, which takes any rank.
template <typename Linear>
std::string linear(const Linear& dense, OnnxLayer& layer) {
  const std::string weight = layer.parameter("weight"),
                    bias = dense.bias ? layer.parameter("bias") : std::string();
  std::string result;
  if (layer.inputShape().rank() == 1) {
    std::vector<std::string> reads{layer.input(), weight};
    if (dense.bias) reads.push_back(bias);
    result = layer.add("Gemm", reads, {{"transB", 1}});
  } else {
    const std::string columns = layer.add("Transpose", {weight}, {{"perm", Integers{1, 0}}});
    result = layer.add("MatMul", {layer.input(), columns});
    if (dense.bias) result = layer.add("Add", {result, bias});
  }
  if constexpr (requires { dense.lossHead(); }) {
    if (takesLogits(dense.loss)) return result;  // addNodes adds the loss's activation
    return layer.activation(dense.lossHead().activation, result);
  } else {
    return layer.activation(dense.activation, result);
  }
}

std::string combineRule(const Combine& combine, OnnxLayer& layer) {
  static constexpr std::array<std::pair<Combination, const char*>, 5> kOperators{
      {{Combination::Add, "Sum"},
       {Combination::Subtract, "Sub"},
       {Combination::Product, "Mul"},
       {Combination::Average, "Mean"},
       {Combination::Max, "Max"}}};
  const char* op = nullptr;
  for (const auto& [combination, name] : kOperators)
    if (combination == combine.combination) op = name;
  const auto& inputs = layer.inputs();
  if (combine.combination != Combination::Product)
    return layer.activation(combine.activation, layer.add(op, inputs));
  std::string product = inputs.front();  // Mul takes two
  for (std::size_t i = 1; i < inputs.size(); ++i) product = layer.add(op, {product, inputs[i]});
  return layer.activation(combine.activation, product);
}

/// The axis counted with the batch dimension; -1: the channels of images, else the last.
std::int64_t axisThere(std::int64_t axis, const Shape& shape) {
  return 1 + (axis >= 0 ? axis : shape.rank() == 3 ? 0 : shape.rank() - 1);
}

std::string subset(const Subset& options, OnnxLayer& layer) {
  const Integers from{options.from}, to{options.to}, axis{axisThere(options.axis, layer.inputShape())};
  return layer.add("Slice", {layer.input(), layer.constant("from", from), layer.constant("to", to),
                             layer.constant("axis", axis)});
}

std::string reshape(const Reshape& options, OnnxLayer& layer) {
  Integers sizes{0};  // 0 keeps the batch size
  sizes.insert(sizes.end(), options.shape.begin(), options.shape.end());
  return layer.add("Reshape", {layer.input(), layer.constant("shape", sizes)});
}

std::string normalise(const Normalise&, OnnxLayer& layer) {
  require(layer.values("scale").data<float>()[0] != 0,
          "it has no numbers to scale by yet; train the network");
  std::string shift = layer.parameter("shift"), scale = layer.parameter("scale");
  if (layer.inputShape().rank() == 3)  // [C] to [C, 1, 1]
    for (std::string* values : {&shift, &scale})
      *values = layer.add("Reshape", {*values, layer.constant("channels", Integers{-1, 1, 1})});
  return layer.add("Mul", {layer.add("Sub", {layer.input(), shift}), scale});
}

}  // namespace

void addOnnxOtherRules(OnnxRules& rules) {
  addTo<Dense>(rules, linear<Dense>);
  addTo<Output>(rules, linear<Output>);
  addTo<ActivationLayer>(rules, [](const ActivationLayer& options, OnnxLayer& layer) {
    return layer.activation(options.activation, layer.input());
  });
  addTo<Combine>(rules, combineRule);
  addTo<Merge>(rules, [](const Merge& merge, OnnxLayer& layer) {
    return layer.add("Concat", layer.inputs(), {{"axis", axisThere(merge.axis, layer.inputShape())}});
  });
  addTo<Subset>(rules, subset);
  addTo<Flatten>(rules, [](const Flatten&, OnnxLayer& layer) {
    return layer.add("Flatten", {layer.input()}, {{"axis", 1}});
  });
  addTo<Reshape>(rules, reshape);
  addTo<Normalise>(rules, normalise);
  addTo<Scale>(rules, [](const Scale& scale, OnnxLayer& layer) {
    return layer.add("Mul", {layer.input(), layer.constant("factor", static_cast<float>(scale.factor))});
  });
  addTo<Dropout>(rules, [](const Dropout&, OnnxLayer& layer) { return layer.input(); });
}

}  // namespace muster::detail
