#include "muster/core/io/detail/layer_json.h"
#include "muster/core/nn/layers.h"
#include "tests/support/test.h"

// Model files have every option of every layer. One function both writes and reads a layer's options, so only
// a list of its own shows that one is missing.

namespace muster {
namespace {

/// The value of any member.
struct AnyValue {
  template <typename T>
  operator T() const {  // NOLINT(google-explicit-constructor): initialises the member
    return T{};
  }
};

template <typename T, std::size_t... I>
constexpr bool initialises(std::index_sequence<I...>) {
  return requires { T{(static_cast<void>(I), AnyValue{})...}; };
}

template <typename T, std::size_t Most = 16>
constexpr std::size_t membersOf() {
  if constexpr (Most == 0 || initialises<T>(std::make_index_sequence<Most>()))
    return Most;
  else
    return membersOf<T, Most - 1>();
}

struct Row {
  template <typename T>
  Row(const T& options, std::string_view text) : layer(options), members(membersOf<T>()), json(text) {}

  Layer layer;
  std::size_t members;
  std::string_view json;
};

/// A line, without the braces.
std::string jsonOfLayer(const Layer& layer) {
  JsonWriter writer;
  detail::writeLayer(layer, writer);
  const std::string line = writer.line();
  return line.substr(1, line.size() - 2);
}

/// How many options a layer's line has, without the type.
std::size_t optionsIn(std::string_view line) {
  std::size_t options = 0;
  int depth = 0;
  for (const char c : line) {
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (c == ':' && depth == 0) ++options;
  }
  return options - 1;
}

// The values are in the order of the members.
TEST_CASE("model files have each option of each layer") {
  constexpr auto kGelu = Activation::GELU, kTanh = Activation::Tanh, kRelu = Activation::ReLU;
  const Init he = Init::he();
  const std::vector<Row> rows{
      {ActivationLayer{kTanh, "n"}, R"("type": "activation", "name": "n", "activation": "tanh")"},
      {BatchNorm{0.25, 0.5, kRelu, false, true, "n"},
       R"("type": "batchnorm", "name": "n", "momentum": 0.25, "epsilon": 0.5, "activation": "relu", "affine": false, "synchronised": true)"},
      {Combine{Combination::Max, kRelu, "n"},
       R"("type": "combine", "name": "n", "combination": "max", "activation": "relu")"},
      {Conv1d{6, 3, 2, 1, 4, 5, true, kGelu, he, false, "n"},
       R"("type": "conv1d", "name": "n", "outChannels": 6, "kernel": 3, "stride": 2, "padding": 1, "dilation": 4, "groups": 5, "causal": true, "activation": "gelu", "init": {"type": "he"}, "bias": false)"},
      {Conv2d{6, {3, 2}, {2, 3}, {1, 2}, {4, 5}, 7, kGelu, he, false, "n"},
       R"("type": "conv2d", "name": "n", "outChannels": 6, "kernel": [3, 2], "stride": [2, 3], "padding": [1, 2], "dilation": [4, 5], "groups": 7, "activation": "gelu", "init": {"type": "he"}, "bias": false)"},
      {ConvTranspose2d{6, {3, 2}, {2, 3}, {1, 2}, {8, 9}, {4, 5}, 7, kGelu, he, false, "n"},
       R"("type": "convtranspose2d", "name": "n", "outChannels": 6, "kernel": [3, 2], "stride": [2, 3], "padding": [1, 2], "outputPadding": [8, 9], "dilation": [4, 5], "groups": 7, "activation": "gelu", "init": {"type": "he"}, "bias": false)"},
      {Dense{6, kTanh, he, false, true, "n"},
       R"("type": "dense", "name": "n", "units": 6, "activation": "tanh", "init": {"type": "he"}, "bias": false, "perStep": true)"},
      {Output{6, 0, Loss::Huber, 2, 0.25, kTanh, he, false, true, LossMean::Examples, 3, "n"},
       R"("type": "output", "name": "n", "classes": 6, "loss": "huber", "delta": 2.0, "labelSmoothing": 0.25, "activation": "tanh", "init": {"type": "he"}, "bias": false, "perStep": true, "lossMean": "examples", "lossWeight": 3.0)"},
      {Output{0, 6, Loss::Huber, 2, 0.25, kTanh, he, false, true, LossMean::Examples, 3, "n"},
       R"("type": "output", "name": "n", "units": 6, "loss": "huber", "delta": 2.0, "labelSmoothing": 0.25, "activation": "tanh", "init": {"type": "he"}, "bias": false, "perStep": true, "lossMean": "examples", "lossWeight": 3.0)"},
      {Dropout{0.25, "n"}, R"("type": "dropout", "name": "n", "rate": 0.25)"},
      {Embedding{6, 7, he, "n"},
       R"("type": "embedding", "name": "n", "vocabulary": 6, "features": 7, "init": {"type": "he"})"},
      {LayerNorm{0.5, false, "n"}, R"("type": "layernorm", "name": "n", "epsilon": 0.5, "affine": false)"},
      {Merge{1, "n"}, R"("type": "merge", "name": "n", "axis": 1)"},
      {Subset{2, 3, 1, "n"}, R"("type": "subset", "name": "n", "from": 2, "to": 3, "axis": 1)"},
      {Normalise{NormaliseMethod::MinMax, "n"}, R"("type": "normalise", "name": "n", "method": "minmax")"},
      {MaxPool1d{3, 4, 1, "n"},
       R"("type": "maxpool1d", "name": "n", "kernel": 3, "stride": 4, "padding": 1)"},
      {AveragePool1d{3, 4, 1, "n"},
       R"("type": "avgpool1d", "name": "n", "kernel": 3, "stride": 4, "padding": 1)"},
      {MaxPool2d{{3, 4}, {5, 6}, {1, 2}, "n"},
       R"("type": "maxpool2d", "name": "n", "kernel": [3, 4], "stride": [5, 6], "padding": [1, 2])"},
      {AveragePool2d{{3, 4}, {5, 6}, {1, 2}, "n"},
       R"("type": "avgpool2d", "name": "n", "kernel": [3, 4], "stride": [5, 6], "padding": [1, 2])"},
      {GlobalPool2d{PoolKind::Max, "n"}, R"("type": "globalpool2d", "name": "n", "kind": "max")"},
      {LSTM{6, false, 0.5, he, Init::zero(), "n"},
       R"("type": "lstm", "name": "n", "units": 6, "returnSequences": false, "forgetBias": 0.5, "init": {"type": "he"}, "recurrentInit": {"type": "zero"})"},
      {GRU{6, false, he, Init::zero(), "n"},
       R"("type": "gru", "name": "n", "units": 6, "returnSequences": false, "init": {"type": "he"}, "recurrentInit": {"type": "zero"})"},
      {Flatten{"n"}, R"("type": "flatten", "name": "n")"},
      {Reshape{{2, 3}, "n"}, R"("type": "reshape", "name": "n", "shape": [2, 3])"},
      {Upsample2d{{3, 4}, UpsampleMode::Bilinear, "n"},
       R"("type": "upsample2d", "name": "n", "scale": [3, 4], "mode": "bilinear")"},
      {ZeroPad2d{{1, 2, 3, 4}, "n"}, R"("type": "zeropad2d", "name": "n", "padding": [1, 2, 3, 4])"},
      {Scale{2, "n"}, R"("type": "scale", "name": "n", "factor": 2.0)"},
      {SelfAttention{2, true, he, "n"},
       R"("type": "selfattention", "name": "n", "heads": 2, "causal": true, "init": {"type": "he"})"},
      {LastStep{"n"}, R"("type": "laststep", "name": "n")"},
      {MeanOverTime{"n"}, R"("type": "meanovertime", "name": "n")"},
  };
  std::set<std::string_view> types;
  for (const auto& [layer, members, json] : rows) {
    const std::string written = jsonOfLayer(layer);
    CHECK(written == json);
    JsonReader reader("{" + written + "}");
    CHECK(jsonOfLayer(detail::readLayer(reader)) == json);
    // An output's number has two names, of which one is written.
    const bool isOutput = layer.module().type() == Output::kType;
    CHECK(optionsIn(written) + (isOutput ? 1 : 0) == members);
    types.insert(layer.module().type());
  }
  CHECK(types.size() == std::tuple_size_v<detail::LibraryLayers>);
}

}  // namespace
}  // namespace muster
