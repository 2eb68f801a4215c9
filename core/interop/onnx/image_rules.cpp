#include "muster/core/interop/onnx/detail/onnx_graph.h"
#include "muster/core/nn/layers.h"

namespace muster::detail {
namespace {

using Integers = std::vector<std::int64_t>;

template <std::size_t N>
Integers list(const std::array<std::int64_t, N>& values) {
  return {values.begin(), values.end()};
}
/// Top, left, bottom, right of a symmetric padding.
Integers pads(const std::array<std::int64_t, 2>& padding) {
  return {padding[0], padding[1], padding[0], padding[1]};
}
std::vector<std::string> withWeights(OnnxLayer& layer, const std::string& value, bool bias) {
  std::vector<std::string> reads{value, layer.parameter("weight")};
  if (bias) reads.push_back(layer.parameter("bias"));
  return reads;
}

std::string convolution(const Conv2d& conv, OnnxLayer& layer) {
  return layer.activation(conv.activation, layer.add("Conv", withWeights(layer, layer.input(), conv.bias),
                                                     {{"kernel_shape", list(conv.kernel)},
                                                      {"strides", list(conv.stride)},
                                                      {"pads", pads(conv.padding)},
                                                      {"dilations", list(conv.dilation)},
                                                      {"group", conv.groups}}));
}

std::string transposedConvolution(const ConvTranspose2d& conv, OnnxLayer& layer) {
  return layer.activation(conv.activation,
                          layer.add("ConvTranspose", withWeights(layer, layer.input(), conv.bias),
                                    {{"kernel_shape", list(conv.kernel)},
                                     {"strides", list(conv.stride)},
                                     {"pads", pads(conv.padding)},
                                     {"output_padding", list(conv.outputPadding)},
                                     {"dilations", list(conv.dilation)},
                                     {"group", conv.groups}}));
}

template <typename Pool>
OnnxAttributes window(const Pool& pool) {
  auto stride = pool.stride;
  for (std::size_t i = 0; i < stride.size(); ++i)
    if (stride[i] == 0) stride[i] = pool.kernel[i];
  return {{"kernel_shape", list(pool.kernel)}, {"strides", list(stride)}, {"pads", pads(pool.padding)}};
}

std::string averagePool(const AveragePool2d& pool, OnnxLayer& layer) {
  OnnxAttributes attributes = window(pool);
  attributes.emplace_back("count_include_pad", std::int64_t{1});
  return layer.add("AveragePool", {layer.input()}, attributes);
}

/// Our bilinear mode is ONNX's linear with half_pixel; ONNX's other modes differ at the edges.
std::string upsample(const Upsample2d& options, OnnxLayer& layer) {
  Tensor scales =
      Tensor::of({1, 1, static_cast<float>(options.scale[0]), static_cast<float>(options.scale[1])}, {4});
  const bool nearest = options.mode == UpsampleMode::Nearest;
  OnnxAttributes attributes{
      {"mode", std::string(nearest ? "nearest" : "linear")},
      {"coordinate_transformation_mode", std::string(nearest ? "asymmetric" : "half_pixel")}};
  if (nearest) attributes.emplace_back("nearest_mode", std::string("floor"));
  return layer.add("Resize", {layer.input(), "", layer.constant("scales", scales)}, attributes);
}

std::string zeroPad(const ZeroPad2d& options, OnnxLayer& layer) {
  const auto& [top, bottom, left, right] = options.padding;
  const Integers around{0, 0, top, left, 0, 0, bottom, right};
  return layer.add("Pad", {layer.input(), layer.constant("pads", around)},
                   {{"mode", std::string("constant")}});
}

/// Ones or zeros in place of a parameter that the layer does not have.
std::string parameterOr(OnnxLayer& layer, const char* name, float fallback, std::int64_t size) {
  if (layer.has(name)) return layer.parameter(name);
  Tensor values = Tensor::empty({size});
  for (float& value : values.span<float>()) value = fallback;
  return layer.constant(name, values);
}

std::string batchNorm(const BatchNorm& norm, OnnxLayer& layer) {
  const std::int64_t channels = layer.inputShape()[0];
  const std::string gamma = parameterOr(layer, "gamma", 1, channels),
                    beta = parameterOr(layer, "beta", 0, channels);
  return layer.activation(norm.activation, layer.add("BatchNormalization",
                                                     {layer.input(), gamma, beta, layer.parameter("mean"),
                                                      layer.parameter("variance")},
                                                     {{"epsilon", norm.epsilon}}));
}

std::string layerNorm(const LayerNorm& norm, OnnxLayer& layer) {
  const std::int64_t features = layer.inputShape()[-1];
  return layer.add(
      "LayerNormalization",
      {layer.input(), parameterOr(layer, "gamma", 1, features), parameterOr(layer, "beta", 0, features)},
      {{"axis", -1}, {"epsilon", norm.epsilon}});
}

// Convolution and pooling along sequences: [N, T, F] in the library, [N, F, T] in ONNX.

std::string featuresFirst(OnnxLayer& layer) {
  return layer.add("Transpose", {layer.input()}, {{"perm", Integers{0, 2, 1}}});
}
std::string stepsFirst(OnnxLayer& layer, const std::string& value) {
  return layer.add("Transpose", {value}, {{"perm", Integers{0, 2, 1}}});
}

std::string convolution1d(const Conv1d& conv, OnnxLayer& layer) {
  const std::int64_t before = conv.causal ? conv.dilation * (conv.kernel - 1) : conv.padding;
  const std::string features = layer.add("Conv", withWeights(layer, featuresFirst(layer), conv.bias),
                                         {{"kernel_shape", Integers{conv.kernel}},
                                          {"strides", Integers{conv.stride}},
                                          {"pads", Integers{before, conv.causal ? 0 : conv.padding}},
                                          {"dilations", Integers{conv.dilation}},
                                          {"group", conv.groups}});
  return layer.activation(conv.activation, stepsFirst(layer, features));
}

template <typename Pool>
OnnxAttributes window1d(const Pool& pool) {
  return {{"kernel_shape", Integers{pool.kernel}},
          {"strides", Integers{pool.stride == 0 ? pool.kernel : pool.stride}},
          {"pads", Integers{pool.padding, pool.padding}}};
}

std::string averagePool1d(const AveragePool1d& pool, OnnxLayer& layer) {
  OnnxAttributes attributes = window1d(pool);
  attributes.emplace_back("count_include_pad", std::int64_t{1});
  return stepsFirst(layer, layer.add("AveragePool", {featuresFirst(layer)}, attributes));
}

}  // namespace

void addOnnxImageRules(OnnxRules& rules) {
  addTo<Conv2d>(rules, convolution);
  addTo<ConvTranspose2d>(rules, transposedConvolution);
  addTo<MaxPool2d>(rules, [](const MaxPool2d& pool, OnnxLayer& layer) {
    return layer.add("MaxPool", {layer.input()}, window(pool));
  });
  addTo<AveragePool2d>(rules, averagePool);
  addTo<GlobalPool2d>(rules, [](const GlobalPool2d& pool, OnnxLayer& layer) {
    return layer.add(pool.kind == PoolKind::Max ? "GlobalMaxPool" : "GlobalAveragePool", {layer.input()});
  });
  addTo<Upsample2d>(rules, upsample);
  addTo<ZeroPad2d>(rules, zeroPad);
  addTo<BatchNorm>(rules, batchNorm);
  addTo<LayerNorm>(rules, layerNorm);
  addTo<Conv1d>(rules, convolution1d);
  addTo<MaxPool1d>(rules, [](const MaxPool1d& pool, OnnxLayer& layer) {
    return stepsFirst(layer, layer.add("MaxPool", {featuresFirst(layer)}, window1d(pool)));
  });
  addTo<AveragePool1d>(rules, averagePool1d);
}

}  // namespace muster::detail
