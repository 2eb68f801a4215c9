#include "muster/core/io/detail/layer_json.h"
#include "muster/core/nn/layers.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/core/nn/batches.h"
#include "tests/core/nn/checks.h"
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
  return requires {
    T{(static_cast<void>(I), AnyValue{})...};
  };
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

TEST_CASE("model files have each option of each layer") {
  const std::vector<Row> rows{
      {ActivationLayer{.activation = Activation::Tanh, .name = "n"},
       R"("type": "activation", "name": "n", "activation": "tanh")"},
      {BatchNorm{.momentum = 0.25,
                 .epsilon = 0.5,
                 .activation = Activation::ReLU,
                 .affine = false,
                 .synchronised = true,
                 .name = "n"},
       R"("type": "batchnorm", "name": "n", "momentum": 0.25, "epsilon": 0.5, "activation": "relu", "affine": false, "synchronised": true)"},
      {Combine{.combination = Combination::Max, .activation = Activation::ReLU, .name = "n"},
       R"("type": "combine", "name": "n", "combination": "max", "activation": "relu")"},
      {Conv1d{.outChannels = 6,
              .kernel = 3,
              .stride = 2,
              .padding = 1,
              .dilation = 4,
              .groups = 5,
              .causal = true,
              .activation = Activation::GELU,
              .init = Init::he(),
              .bias = false,
              .name = "n"},
       R"("type": "conv1d", "name": "n", "outChannels": 6, "kernel": 3, "stride": 2, "padding": 1, "dilation": 4, "groups": 5, "causal": true, "activation": "gelu", "init": {"type": "he"}, "bias": false)"},
      {Conv2d{.outChannels = 6,
              .kernel = {3, 2},
              .stride = {2, 3},
              .padding = {1, 2},
              .dilation = {4, 5},
              .groups = 7,
              .activation = Activation::GELU,
              .init = Init::he(),
              .bias = false,
              .name = "n"},
       R"("type": "conv2d", "name": "n", "outChannels": 6, "kernel": [3, 2], "stride": [2, 3], "padding": [1, 2], "dilation": [4, 5], "groups": 7, "activation": "gelu", "init": {"type": "he"}, "bias": false)"},
      {ConvTranspose2d{.outChannels = 6,
                       .kernel = {3, 2},
                       .stride = {2, 3},
                       .padding = {1, 2},
                       .outputPadding = {8, 9},
                       .dilation = {4, 5},
                       .groups = 7,
                       .activation = Activation::GELU,
                       .init = Init::he(),
                       .bias = false,
                       .name = "n"},
       R"("type": "convtranspose2d", "name": "n", "outChannels": 6, "kernel": [3, 2], "stride": [2, 3], "padding": [1, 2], "outputPadding": [8, 9], "dilation": [4, 5], "groups": 7, "activation": "gelu", "init": {"type": "he"}, "bias": false)"},
      {Dense{.units = 6,
             .activation = Activation::Tanh,
             .init = Init::he(),
             .bias = false,
             .perStep = true,
             .name = "n"},
       R"("type": "dense", "name": "n", "units": 6, "activation": "tanh", "init": {"type": "he"}, "bias": false, "perStep": true)"},
      {Output{.classes = 6,
              .loss = Loss::Huber,
              .delta = 2,
              .labelSmoothing = 0.25,
              .activation = Activation::Tanh,
              .init = Init::he(),
              .bias = false,
              .perStep = true,
              .lossMean = LossMean::Examples,
              .lossWeight = 3,
              .name = "n"},
       R"("type": "output", "name": "n", "classes": 6, "loss": "huber", "delta": 2.0, "labelSmoothing": 0.25, "activation": "tanh", "init": {"type": "he"}, "bias": false, "perStep": true, "lossMean": "examples", "lossWeight": 3.0)"},
      {Output{.units = 6,
              .loss = Loss::Huber,
              .delta = 2,
              .labelSmoothing = 0.25,
              .activation = Activation::Tanh,
              .init = Init::he(),
              .bias = false,
              .perStep = true,
              .lossMean = LossMean::Examples,
              .lossWeight = 3,
              .name = "n"},
       R"("type": "output", "name": "n", "units": 6, "loss": "huber", "delta": 2.0, "labelSmoothing": 0.25, "activation": "tanh", "init": {"type": "he"}, "bias": false, "perStep": true, "lossMean": "examples", "lossWeight": 3.0)"},
      {Dropout{.rate = 0.25, .name = "n"}, R"("type": "dropout", "name": "n", "rate": 0.25)"},
      {Embedding{.vocabulary = 6, .features = 7, .init = Init::he(), .name = "n"},
       R"("type": "embedding", "name": "n", "vocabulary": 6, "features": 7, "init": {"type": "he"})"},
      {LayerNorm{.epsilon = 0.5, .affine = false, .name = "n"},
       R"("type": "layernorm", "name": "n", "epsilon": 0.5, "affine": false)"},
      {Merge{.axis = 1, .name = "n"}, R"("type": "merge", "name": "n", "axis": 1)"},
      {Subset{.from = 2, .to = 3, .axis = 1, .name = "n"},
       R"("type": "subset", "name": "n", "from": 2, "to": 3, "axis": 1)"},
      {Normalise{.method = NormaliseMethod::MinMax, .name = "n"},
       R"("type": "normalise", "name": "n", "method": "minmax")"},
      {MaxPool1d{.kernel = 3, .stride = 4, .padding = 1, .name = "n"},
       R"("type": "maxpool1d", "name": "n", "kernel": 3, "stride": 4, "padding": 1)"},
      {AveragePool1d{.kernel = 3, .stride = 4, .padding = 1, .name = "n"},
       R"("type": "avgpool1d", "name": "n", "kernel": 3, "stride": 4, "padding": 1)"},
      {MaxPool2d{.kernel = {3, 4}, .stride = {5, 6}, .padding = {1, 2}, .name = "n"},
       R"("type": "maxpool2d", "name": "n", "kernel": [3, 4], "stride": [5, 6], "padding": [1, 2])"},
      {AveragePool2d{.kernel = {3, 4}, .stride = {5, 6}, .padding = {1, 2}, .name = "n"},
       R"("type": "avgpool2d", "name": "n", "kernel": [3, 4], "stride": [5, 6], "padding": [1, 2])"},
      {GlobalPool2d{.kind = PoolKind::Max, .name = "n"},
       R"("type": "globalpool2d", "name": "n", "kind": "max")"},
      {LSTM{.units = 6,
            .returnSequences = false,
            .forgetBias = 0.5,
            .init = Init::he(),
            .recurrentInit = Init::zero(),
            .name = "n"},
       R"("type": "lstm", "name": "n", "units": 6, "returnSequences": false, "forgetBias": 0.5, "init": {"type": "he"}, "recurrentInit": {"type": "zero"})"},
      {GRU{.units = 6,
           .returnSequences = false,
           .init = Init::he(),
           .recurrentInit = Init::zero(),
           .name = "n"},
       R"("type": "gru", "name": "n", "units": 6, "returnSequences": false, "init": {"type": "he"}, "recurrentInit": {"type": "zero"})"},
      {Flatten{.name = "n"}, R"("type": "flatten", "name": "n")"},
      {Reshape{.shape = {2, 3}, .name = "n"}, R"("type": "reshape", "name": "n", "shape": [2, 3])"},
      {Upsample2d{.scale = {3, 4}, .mode = UpsampleMode::Bilinear, .name = "n"},
       R"("type": "upsample2d", "name": "n", "scale": [3, 4], "mode": "bilinear")"},
      {ZeroPad2d{.padding = {1, 2, 3, 4}, .name = "n"},
       R"("type": "zeropad2d", "name": "n", "padding": [1, 2, 3, 4])"},
      {Scale{.factor = 2, .name = "n"}, R"("type": "scale", "name": "n", "factor": 2.0)"},
      {SelfAttention{.heads = 2, .causal = true, .init = Init::he(), .name = "n"},
       R"("type": "selfattention", "name": "n", "heads": 2, "causal": true, "init": {"type": "he"})"},
      {LastStep{.name = "n"}, R"("type": "laststep", "name": "n")"},
      {MeanOverTime{.name = "n"}, R"("type": "meanovertime", "name": "n")"},
  };
  std::set<std::string_view> types;
  for (const auto& [layer, members, json] : rows) {
    const std::string written = jsonOfLayer(layer);
    CHECK(written == json);
    // An output's number has two names, of which one is written.
    const bool isOutput = layer.module().type() == Output::kType;
    CHECK(optionsIn(written) + (isOutput ? 1 : 0) == members);
    types.insert(layer.module().type());
  }
  CHECK(types.size() == std::tuple_size_v<detail::LibraryLayers>);
}

TEST_CASE("models whose layers have options are saved and loaded, and give the same outputs bit for bit") {
  const auto comesBack = [](const Shape& input, std::vector<Layer> layers) {
    layers.emplace_back(Output{.classes = 3});
    MultiLayerNetwork model({.seed = 5, .inputShape = input, .layers = std::move(layers)});
    model.init();
    Batch batch = test::classBatch(input, 5, 3, 2);
    model.step(batch);  // changes statistics
    test::checkComesBack(model, batch);
  };
  comesBack({4, 6, 6}, {Conv2d{.outChannels = 6, .kernel = {3, 3}, .groups = 2},
                        BatchNorm{.momentum = 0.25, .epsilon = 1e-4, .activation = Activation::ReLU},
                        ConvTranspose2d{.outChannels = 4,
                                        .kernel = {3, 3},
                                        .stride = {2, 2},
                                        .padding = {1, 1},
                                        .outputPadding = {1, 0},
                                        .dilation = {1, 2},
                                        .groups = 2,
                                        .activation = Activation::ReLU},
                        Upsample2d{.scale = {2, 1}, .mode = UpsampleMode::Bilinear},
                        ZeroPad2d{.padding = {1, 2, 3, 0}}});
  comesBack(
      {7, 4},
      {Conv1d{.outChannels = 6, .kernel = 3, .stride = 2, .padding = 1, .dilation = 2, .groups = 2},
       Conv1d{.outChannels = 5, .kernel = 2, .causal = true},
       LSTM{.units = 6, .forgetBias = 0.5, .recurrentInit = Init::uniform(0.1)},
       LayerNorm{.epsilon = 0.25, .affine = false}, SelfAttention{.heads = 2, .causal = true}, LastStep{}});
}

}  // namespace
}  // namespace muster
