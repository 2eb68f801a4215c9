#include <algorithm>
#include <cmath>

#include "muster/core/interop/onnx/detail/onnx_graph.h"
#include "muster/core/nn/layers.h"

namespace muster::detail {
namespace {

using Integers = std::vector<std::int64_t>;
constexpr std::int64_t kFloat = onnx::TensorProto::FLOAT, kInt64 = onnx::TensorProto::INT64;

/// The mask of real steps as float32 [N, T, 1]. Requires lengths.
std::string stepFactors(OnnxLayer& layer) {
  const std::string number = layer.add("Cast", {layer.realSteps()}, {{"to", kFloat}});
  return layer.add("Unsqueeze", {number, layer.constant("last", Integers{2})});
}

/// A table row for each step. Padding may hold any index, so it reads row 0 and gives zeros.
std::string embedding(const Embedding&, OnnxLayer& layer) {
  std::string indices = layer.input();
  const std::string real = layer.realSteps();
  if (!real.empty()) indices = layer.add("Mul", {indices, layer.add("Cast", {real}, {{"to", kInt64}})});
  const std::string rows = layer.add("Gather", {layer.parameter("weight"), indices}, {{"axis", 0}});
  return real.empty() ? rows : layer.add("Mul", {rows, stepFactors(layer)});
}

/// The rows of `values`, with its gates in the order `gates`, as [1, rows, columns].
Tensor reordered(const Tensor& values, const std::vector<std::int64_t>& gates, std::int64_t units) {
  const std::int64_t columns = values.shape().rank() == 1 ? 1 : values.shape()[1];
  const auto rows = static_cast<std::int64_t>(gates.size()) * units;
  Tensor result = Tensor::empty({1, rows, columns});
  float* to = result.data<float>();
  for (const std::int64_t gate : gates)
    to = std::copy_n(values.data<float>() + gate * units * columns, units * columns, to);
  return result;
}

/// Both biases of the gates, [1, 2 rows]; an undefined `second` counts as zeros.
Tensor joinedBias(const Tensor& first, const Tensor& second) {
  const std::int64_t rows = first.elements();
  Tensor result = Tensor::zeros({1, 2 * rows});
  std::copy_n(first.data<float>(), rows, result.data<float>());
  if (second.defined())
    std::copy_n(second.data<float>(), second.elements(), result.data<float>() + 2 * rows - second.elements());
  return result;
}

/// Transposes to time first: onnxruntime has no other layout for recurrent operators.
template <typename Recurrent>
std::string recurrent(const Recurrent& options, OnnxLayer& layer, const char* op, const Integers& gates,
                      OnnxAttributes attributes) {
  const std::int64_t units = options.units;
  Tensor second;
  if (layer.has("recurrentBias")) second = layer.values("recurrentBias");
  const std::string w = layer.constant("W", reordered(layer.values("weight"), gates, units)),
                    r = layer.constant("R", reordered(layer.values("recurrentWeight"), gates, units)),
                    b = layer.constant("B",
                                       joinedBias(reordered(layer.values("bias"), gates, units), second));
  const std::string steps = layer.add("Transpose", {layer.input()}, {{"perm", Integers{1, 0, 2}}});
  attributes.emplace_back("hidden_size", units);
  const auto outputs = layer.addMany(op, {steps, w, r, b, layer.lengths()}, 2, attributes);
  if (!options.returnSequences)
    return layer.add("Squeeze", {outputs[1], layer.constant("direction", Integers{0})});
  const std::string sequence = layer.add("Squeeze", {outputs[0], layer.constant("direction", Integers{1})});
  return layer.add("Transpose", {sequence}, {{"perm", Integers{1, 0, 2}}});
}

std::string lastStep(const LastStep&, OnnxLayer& layer) {
  const std::string real = layer.realSteps();
  if (real.empty()) {
    Tensor last = Tensor::empty({}, DType::Int64);
    *last.data<std::int64_t>() = -1;
    return layer.add("Gather", {layer.input(), layer.constant("last", last)}, {{"axis", 1}});
  }
  // The last step is the only real one that padding or the end follows: the sum has that one term, or none.
  const std::string number = layer.add("Cast", {real}, {{"to", kFloat}});
  const std::string later =
      layer.add("Slice", {number, layer.constant("from", Integers{1}),
                          layer.constant("to", Integers{INT64_MAX}), layer.constant("axis", Integers{1})});
  const std::string shifted = layer.add("Pad", {later, layer.constant("pads", Integers{0, 0, 0, 1})});
  const std::string factors =
      layer.add("Unsqueeze", {layer.add("Sub", {number, shifted}), layer.constant("last", Integers{2})});
  return layer.add("ReduceSum",
                   {layer.add("Mul", {layer.input(), factors}), layer.constant("time", Integers{1})},
                   {{"keepdims", 0}});
}

std::string meanOverTime(const MeanOverTime&, OnnxLayer& layer) {
  if (layer.realSteps().empty())
    return layer.add("ReduceMean", {layer.input()}, {{"axes", Integers{1}}, {"keepdims", 0}});
  const std::string factors = stepFactors(layer), time = layer.constant("time", Integers{1});
  const std::string sum =
      layer.add("ReduceSum", {layer.add("Mul", {layer.input(), factors}), time}, {{"keepdims", 0}});
  const std::string count = layer.add("ReduceSum", {factors, time}, {{"keepdims", 0}});
  return layer.add("Div", {sum, layer.add("Max", {count, layer.constant("one", 1.0f)})});
}

/// The bool mask of the keys that each query sees, broadcast to [N, heads, T, T]; empty: all keys.
std::string visibleKeys(const SelfAttention& attention, OnnxLayer& layer) {
  std::string visible;
  if (const std::string real = layer.realSteps(); !real.empty())
    visible = layer.add("Unsqueeze", {real, layer.constant("keys", Integers{1, 2})});
  if (!attention.causal) return visible;
  Tensor zero = Tensor::zeros({}, DType::Int64), one = Tensor::zeros({}, DType::Int64);
  *one.data<std::int64_t>() = 1;
  const std::string first = layer.constant("first", zero), next = layer.constant("next", one);
  const std::string steps = layer.add("Gather", {layer.add("Shape", {layer.input()}), next}, {{"axis", 0}});
  const std::string keys = layer.add("Range", {first, steps, next});
  const std::string queries = layer.add("Unsqueeze", {keys, layer.constant("queries", Integers{1})});
  const std::string earlier = layer.add("LessOrEqual", {keys, queries});
  return visible.empty() ? earlier : layer.add("And", {visible, earlier});
}

std::string rowsTimes(OnnxLayer& layer, const std::string& rows, const char* weight, const char* bias) {
  const std::string columns = layer.add("Transpose", {layer.parameter(weight)}, {{"perm", Integers{1, 0}}});
  return layer.add("Add", {layer.add("MatMul", {rows, columns}), layer.parameter(bias)});
}

std::string selfAttention(const SelfAttention& attention, OnnxLayer& layer) {
  const std::int64_t features = layer.inputShape()[1], width = features / attention.heads;
  const auto parts =
      layer.addMany("Split", {rowsTimes(layer, layer.input(), "inputWeight", "inputBias")}, 3, {{"axis", 2}});
  const std::string heads = layer.constant("heads", Integers{0, 0, attention.heads, width});
  const auto part = [&](std::size_t which, const Integers& order) {
    return layer.add("Transpose", {layer.add("Reshape", {parts[which], heads})}, {{"perm", order}});
  };
  const std::string products = layer.add("MatMul", {part(0, {0, 2, 1, 3}), part(1, {0, 2, 3, 1})});
  const std::string scale = layer.constant("scale", 1.0f / std::sqrt(static_cast<float>(width)));
  std::string scores = layer.add("Mul", {products, scale});
  // Not minus infinity: softmax would give NaN for a row without a real step.
  if (const std::string visible = visibleKeys(attention, layer); !visible.empty())
    scores = layer.add("Where", {visible, scores, layer.constant("unseen", -1e30f)});
  const std::string weights = layer.add("Softmax", {scores}, {{"axis", -1}});
  const std::string seen = layer.add("Transpose", {layer.add("MatMul", {weights, part(2, {0, 2, 1, 3})})},
                                     {{"perm", Integers{0, 2, 1, 3}}});
  const std::string joined = layer.add("Reshape", {seen, layer.constant("rows", Integers{0, 0, features})});
  const std::string result = rowsTimes(layer, joined, "outputWeight", "outputBias");
  return layer.lengths().empty() ? result : layer.add("Mul", {result, stepFactors(layer)});
}

}  // namespace

void addOnnxSequenceRules(OnnxRules& rules) {
  addTo<Embedding>(rules, embedding);
  // Gate order: i, f, g, o here and i, o, f, g in ONNX; r, z, n here and z, r, n in ONNX.
  addTo<LSTM>(rules, [](const LSTM& lstm, OnnxLayer& layer) {
    return recurrent(lstm, layer, "LSTM", {0, 3, 1, 2}, {});
  });
  addTo<GRU>(rules, [](const GRU& gru, OnnxLayer& layer) {
    return recurrent(gru, layer, "GRU", {1, 0, 2}, {{"linear_before_reset", 1}});
  });
  addTo<LastStep>(rules, lastStep);
  addTo<MeanOverTime>(rules, meanOverTime);
  addTo<SelfAttention>(rules, selfAttention);
}

}  // namespace muster::detail
