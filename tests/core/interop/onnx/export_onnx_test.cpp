#include "muster/core/interop/onnx/export_onnx.h"

#include "muster/core/interop/onnx/detail/onnx_graph.h"
#include "muster/core/nn/models/char_lstm.h"
#include "muster/core/nn/models/lenet.h"
#include "muster/core/nn/models/resnet18.h"
#include "tests/core/interop/onnx/compared_models.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

const Shape kImage{4, 7, 6};
const Shape kSequence{0, 4};  // 0: the requested length

/// A user-defined layer.
struct Doubled {
  static constexpr std::string_view kType = "test-doubled";
  double factor = 2;
  std::string name = {};
  Shape outputShape(const Shape& input) const { return input; }
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const {
    return Scale{.factor = factor}.compile(binding, context);
  }
  void fields(Fields& f) {
    f.field("name", name);
    f.field("factor", factor);
  }
  void validate() const {}
};

Output numbers(std::int64_t count, Activation activation) {
  return {.classes = count, .loss = Loss::MeanSquaredError, .activation = activation};
}

/// Exports a model and reads it back, for inspection.
onnx::ModelProto exported(Network& network, const OnnxOptions& options = {}) {
  const TemporaryDirectory directory;
  exportOnnx(network, directory / "m.onnx", options);
  onnx::ModelProto model;
  REQUIRE(model.ParseFromString(readFile(directory / "m.onnx")));
  return model;
}

std::string shapeText(const onnx::ValueInfoProto& value) {
  std::string text = value.name() + ":";
  for (const auto& dimension : value.type().tensor_type().shape().dim())
    text += " " + (dimension.has_dim_param() ? dimension.dim_param() : std::to_string(dimension.dim_value()));
  return text;
}

template <typename... T>
std::vector<std::string_view> typesOf(std::type_identity<std::tuple<T...>>) {
  return {T::kType...};
}

TEST_CASE("every layer of the library has an export rule") {
  for (const auto type : typesOf(std::type_identity<muster::detail::LibraryLayers>())) {
    CAPTURE(type);
    CHECK_NOTHROW(muster::detail::onnxRule(type));
  }
}

void addImageLayers(ComparedModels& models) {
  const auto one = [&](const std::string& name, const Layer& layer) {
    models.add(name, chain({layer}, kImage));
  };
  for (const auto activation : {Activation::Identity, Activation::ReLU, Activation::LeakyReLU,
                                Activation::Tanh, Activation::Sigmoid, Activation::GELU}) {
    const std::string name(nameOf(activation));
    one("conv_" + name, Conv2d{.outChannels = 3, .kernel = {3, 2}, .activation = activation});
    one("layer_" + name, ActivationLayer{.activation = activation});
  }
  one("layer_softmax", ActivationLayer{.activation = Activation::Softmax});
  one("conv_all", Conv2d{.outChannels = 6,
                         .kernel = {3, 2},
                         .stride = {2, 1},
                         .padding = {2, 1},
                         .dilation = {2, 3},
                         .groups = 2,
                         .bias = false});
  one("conv_depthwise", Conv2d{.outChannels = 4, .kernel = {3, 3}, .padding = {1, 1}, .groups = 4});
  one("conv_transposed", ConvTranspose2d{.outChannels = 6,
                                         .kernel = {3, 2},
                                         .stride = {2, 3},
                                         .padding = {1, 0},
                                         .outputPadding = {1, 2},
                                         .groups = 2,
                                         .activation = Activation::ReLU});
  one("conv_transposed_dilated",
      ConvTranspose2d{.outChannels = 2, .kernel = {3, 2}, .dilation = {2, 1}, .bias = false});
  one("max_pool", MaxPool2d{.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 0}});
  one("max_pool_plain", MaxPool2d{});
  one("average_pool", AveragePool2d{.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}});
  one("global_average", GlobalPool2d{});
  one("global_max", GlobalPool2d{.kind = PoolKind::Max});
  one("nearest", Upsample2d{.scale = {3, 2}});
  one("bilinear", Upsample2d{.scale = {2, 3}, .mode = UpsampleMode::Bilinear});
  one("zero_pad", ZeroPad2d{.padding = {1, 2, 3, 0}});
  one("batch_norm", BatchNorm{.epsilon = 0.01, .activation = Activation::ReLU});
  one("batch_norm_plain", BatchNorm{.affine = false});
  one("normalise", Normalise{});
  one("flatten", Flatten{});
  one("reshape", Reshape{.shape = {6, 28}});
  one("subset_channels", Subset{.from = 1, .to = 3});
  one("subset_rows", Subset{.from = 2, .to = 7, .axis = 1});
  one("scale", Scale{.factor = -0.3});
  one("dropout", Dropout{});
  one("dense_over_image", Dense{.units = 5, .activation = Activation::Softmax});
}

void addRowLayersAndVertices(ComparedModels& models) {
  models.add("normalise_rows", chain({Normalise{}, Dense{.units = 3}}, {6}));
  models.add("dense", chain({Dense{.units = 4, .activation = Activation::GELU}, BatchNorm{},
                             LayerNorm{.epsilon = 0.1}, LayerNorm{.affine = false},
                             OnDevice(Dense{.units = 3, .bias = false}, Device::cpu()), Output{.classes = 4}},
                            {6}));
  models.add(
      "sigmoid",
      chain({Output{.classes = 3, .loss = Loss::BinaryCrossEntropy, .activation = Activation::Sigmoid}},
            {6}));
  models.add("regression", chain({numbers(3, Activation::Tanh)}, {6}));
  for (const auto combination : {Combination::Add, Combination::Subtract, Combination::Product,
                                 Combination::Average, Combination::Max})
    for (const std::size_t inputs : {2, 3}) {
      if (combination == Combination::Subtract && inputs == 3) continue;
      models.add(
          fmt::format("{}{}", nameOf(combination), inputs), graph([=](std::int64_t) {
            ComputationGraphConfiguration all{.seed = 1, .inputs = {{.name = "a", .shape = {2, 3, 4}}}};
            std::vector<std::string> reads;
            for (std::size_t i = 0; i < inputs; ++i)
              reads.push_back(all.add(fmt::format("conv{}", i), Conv2d{.outChannels = 3}, {"a"}));
            const Combine combine{.combination = combination, .activation = Activation::Sigmoid};
            all.addOutput(all.add("all", combine, reads));
            return all;
          }));
    }
  models.add("two_of_each", graph([](std::int64_t) {
               ComputationGraphConfiguration all{
                   .seed = 1,
                   .inputs = {{.name = "a", .shape = {2, 3, 4}}, {.name = "b", .shape = {5, 3, 4}}}};
               all.add("joined", Merge{}, {"a", "b"});
               all.add("rows", Merge{.axis = 1}, {"joined", "joined"});
               all.addOutput(all.add("kind", Output{.classes = 3}, {"rows"}));
               all.addOutput(all.add("size", numbers(2, Activation::Identity), {"joined"}));
               // A vertex that reads an output gets its logits, not its probabilities.
               all.addOutput(all.add("after", Dense{.units = 2}, {"kind"}));
               return all;
             }));
}

void addSequenceLayers(ComparedModels& models) {
  const auto one = [&](const std::string& name, const std::vector<Layer>& layers) {
    models.add(name, chain(layers, kSequence), true);
  };
  one("conv1d", {Conv1d{.outChannels = 4,
                        .kernel = 3,
                        .stride = 2,
                        .padding = 1,
                        .groups = 2,
                        .activation = Activation::Tanh}});
  one("conv1d_causal", {Conv1d{.outChannels = 3, .kernel = 2, .dilation = 2, .causal = true, .bias = false}});
  one("max_pool1d", {MaxPool1d{.kernel = 3, .stride = 2, .padding = 1}});
  one("average_pool1d", {AveragePool1d{.kernel = 2, .padding = 1}});
  one("dense_per_step", {Dense{.units = 3, .activation = Activation::ReLU, .perStep = true},
                         Dense{.units = 4, .bias = false, .perStep = true}, LayerNorm{}});
  one("output_per_step", {Output{.classes = 3, .perStep = true}});
  one("softmax", {ActivationLayer{.activation = Activation::Softmax}});
  one("features", {Subset{.from = 1, .to = 3}, Scale{.factor = 2}, Dropout{}});
  one("normalise_steps", {Normalise{.method = NormaliseMethod::MinMax}});
  one("steps", {Subset{.from = 1, .to = 4, .axis = 0}});
  one("flattened", {Flatten{}});
}

void addMaskedLayers(ComparedModels& models) {
  for (const bool lengths : {false, true}) {
    const auto one = [&](const std::string& name, const std::vector<Layer>& layers, const Shape& input) {
      models.add(name + (lengths ? "_lengths" : ""), chain(layers, input), true, lengths);
    };
    one("lstm", {LSTM{.units = 3}}, kSequence);
    one("lstm_last", {LSTM{.units = 3, .returnSequences = false}}, kSequence);
    one("gru", {GRU{.units = 3}}, kSequence);
    one("gru_last", {GRU{.units = 3, .returnSequences = false}}, kSequence);
    one("last_step", {LastStep{}}, kSequence);
    one("mean_over_time", {MeanOverTime{}}, kSequence);
    one("attention", {SelfAttention{.heads = 2}}, kSequence);
    one("attention_causal", {SelfAttention{.heads = 4, .causal = true}}, kSequence);
    one("embedding",
        {Embedding{.vocabulary = 5, .features = 3}, LSTM{.units = 2, .returnSequences = false},
         Output{.classes = 2}},
        {0});
  }
}

TEST_CASE("onnxruntime computes the same as every layer of the library") {
  ComparedModels models;
  addImageLayers(models);
  addRowLayersAndVertices(models);
  addSequenceLayers(models);
  addMaskedLayers(models);
  CHECK(models.agree());
  for (const auto type : typesOf(std::type_identity<muster::detail::LibraryLayers>())) {
    CAPTURE(type);
    CHECK(models.types().contains(std::string(type)));
  }
}

TEST_CASE("onnxruntime computes the same as whole networks") {
  ComparedModels models;
  models.add("lenet", chain(lenet(10).layers, lenet(10).inputShape));
  // Its logits: with random statistics the probabilities are all 0 and 1.
  models.add("resnet18", graph([](std::int64_t) {
               auto network = resnet18(10, 3, {.imageSize = {33, 33}, .width = 16, .largeImages = true});
               network.vertices.back().layer = numbers(10, Activation::Identity);
               return network;
             }));
  const auto text = charLstm(11, {.units = 24, .embedding = 8, .dropout = 0.2});
  models.add("char_lstm", chain(text.layers, {0}), true, false, 11);
  models.add("char_lstm_lengths", chain(text.layers, {0}), true, true, 11);
  for (const bool lengths : {false, true})
    models.add(
        lengths ? "block_lengths" : "block", graph([](std::int64_t steps) {
          ComputationGraphConfiguration block{.seed = 1, .inputs = {{.name = "x", .shape = {steps, 8}}}};
          block.add("attention", SelfAttention{.heads = 2, .causal = true}, {"x"});
          block.add("norm1", LayerNorm{}, {block.add("sum1", Combine{}, {"x", "attention"})});
          block.add("wide", Dense{.units = 32, .activation = Activation::GELU, .perStep = true}, {"norm1"});
          block.add("narrow", Dense{.units = 8, .perStep = true}, {"wide"});
          block.add("norm2", LayerNorm{}, {block.add("sum2", Combine{}, {"norm1", "narrow"})});
          block.addOutput(
              block.add("class", Output{.classes = 3}, {block.add("mean", MeanOverTime{}, {"norm2"})}));
          return block;
        }),
        true, lengths);
  CHECK(models.agree());
}

TEST_CASE("a user-defined layer is exported by its rule, and refused by name without one") {
  const auto make = chain({Doubled{.factor = 3.5, .name = "twice"}, Output{.classes = 2}}, {6});
  const TemporaryDirectory directory;
  CHECK_REFUSED(exportOnnx(*make(0), directory / "m.onnx"),
                "onnx: twice (test-doubled): there is no rule for layers of type test-doubled; registerOnnx "
                "(core/interop/onnx/onnx_layer.h) adds one");
  CHECK(directory.names().empty());
  registerOnnx<Doubled>([](const Doubled& doubled, OnnxLayer& layer) {
    return layer.add("Mul", {layer.input(), layer.constant("factor", static_cast<float>(doubled.factor))});
  });
  ComparedModels models;
  models.add("own", make);
  CHECK(models.agree());
  registerOnnx<Doubled>(
      [](const Doubled&, OnnxLayer& layer) { return layer.add("Concat", {layer.input()}); });
  const auto refused = thrown<InvalidArgument>([&] { exportOnnx(*make(0), directory / "m.onnx"); });
  CAPTURE(refused);
  CHECK(refused.starts_with("onnx: the model does not pass ONNX's checks: "));
  CHECK_CONTAINS(refused, "axis");
}

TEST_CASE("batch size and length are symbolic, and weights have the names of muster's files") {
  const auto network =
      chain({LSTM{.units = 3, .name = "memory"}, Conv1d{.outChannels = 2, .kernel = 2, .stride = 2},
             Dense{.units = 2, .perStep = true, .name = "rows"}},
            kSequence)(6);
  const auto model = exported(*network, {.lengths = true});
  CHECK(shapeText(model.graph().input(0)) + "; " + shapeText(model.graph().input(1)) + "; " +
            shapeText(model.graph().output(0)) ==
        "features: N T 4; lengths: N; rows: N rows_1 2");
  CHECK(textOf(model.ir_version(), model.opset_import(0).version()) == "8 17");
  std::vector<std::string> weights;
  for (const auto& tensor : model.graph().initializer())
    if (tensor.name().find('.') != std::string::npos) weights.push_back(tensor.name());
  CHECK(weights == std::vector<std::string>{"conv1d1.weight", "conv1d1.bias", "rows.weight", "rows.bias"});
  const auto fixed = exported(*chain({LSTM{.units = 3}, Output{.classes = 2}}, kSequence)(6));
  CHECK(shapeText(fixed.graph().input(0)) == "features: N 6 4");  // a dense layer over the whole sequence
}

TEST_CASE("a model that cannot be exported is refused with the reason") {
  const TemporaryDirectory directory;
  const auto refused = [&](const std::vector<Layer>& layers, const Shape& input) {
    return thrown<InvalidArgument>(
        [&] { exportOnnx(*chain(layers, input)(6), directory / "m.onnx", {.lengths = true}); });
  };
  MultiLayerNetwork raw({.inputShape = {3}, .layers = {Output{.classes = 2}}});
  CHECK_REFUSED(exportOnnx(raw, directory / "m.onnx"), "onnx: the network is not initialised; call init()");
  CHECK(refused({Output{.classes = 2}}, {3}) ==
        "onnx: no layer of this network reads lengths; export it without them");
  CHECK(refused({MaxPool1d{.name = "pool"}, LSTM{.units = 2, .name = "memory"}}, kSequence) ==
        "onnx: memory (lstm): it reads lengths, but its sequences have 3 steps and those of the input 6");
  CHECK(directory.names().empty());
  CHECK_CONTAINS(thrown<FileError>([&] {
                   exportOnnx(*chain({Output{.classes = 2}}, {3})(6), directory / "absent" / "m.onnx");
                 }),
                 "absent");
}

}  // namespace
}  // namespace muster::test
