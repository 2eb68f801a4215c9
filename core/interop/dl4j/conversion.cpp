#include "muster/core/interop/dl4j/detail/conversion.h"

#include <algorithm>
#include <set>

#include "muster/core/base/error.h"
#include "muster/core/interop/dl4j/detail/rules.h"
#include "muster/core/interop/dl4j/detail/training.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/multi_layer_network.h"

namespace muster::dl4j::detail {
namespace {

constexpr std::string_view kToRows = "CnnToFeedForwardPreProcessor",
                           kToImages = "FeedForwardToCnnPreProcessor",
                           kToSteps = "RnnToFeedForwardPreProcessor",
                           kToSequence = "FeedForwardToRnnPreProcessor";

/// The channels, height and width that a preprocessor states.
Shape imageIn(const Options& preprocessor) {
  return {preprocessor.count({"numChannels"}, 0), preprocessor.count({"inputHeight"}, 0),
          preprocessor.count({"inputWidth"}, 0)};
}

/// What the first layers that read a value say of it.
struct Reader {
  std::optional<Kind> kind;
  std::int64_t features = 0;  ///< 0: not known
  Shape shape = {};           ///< if it is known completely
};

class Converter {
 public:
  Converter(const Description& description, const std::vector<Shape>& shapes, Problems& problems)
      : description_(description), shapes_(shapes), problems_(problems), sizes_(description, shapes) {}

  Conversion run(const FirstLayers& first);

 private:
  void addInputs();
  Reader readerOf(const std::string& value, std::set<std::string>& seen) const;
  Shape inputShape(const std::string& name, const Reader& reader) const;
  void addVertex(const Vertex& vertex);
  /// @return the kind of the layer's input.
  Kind addPreprocessor(const Vertex& vertex, Kind kind);
  void addLayer(const Vertex& vertex, const Reading& reading);
  void append(Layer layer, std::vector<std::string> inputs);
  LayerSettings settingsOf(const Vertex& vertex, const Converted& made);
  std::unique_ptr<Network> network() const;

  const Description& description_;
  const std::vector<Shape>& shapes_;
  Problems& problems_;
  ImageSizes sizes_;
  TrainingReader training_;
  bool trained_ = false;  // a layer so far
  std::vector<PlacedParameter> parameters_;
  std::vector<GraphInput> inputs_;
  std::vector<GraphVertex> vertices_;  // a chain's too
  std::map<std::string, Kind, std::less<>> kinds_;
  std::map<std::string, std::string, std::less<>> replaced_;  // an input by its first layer
};

/// Looks through layers that any input has.
Reader Converter::readerOf(const std::string& value, std::set<std::string>& seen) const {
  if (!seen.insert(value).second) return {};
  Reader found;
  for (const Vertex& vertex : description_.vertices) {
    if (std::ranges::find(vertex.inputs, value) == vertex.inputs.end()) continue;
    const std::string before = vertex.preprocessorType();
    if (before == kToImages) {
      const Shape image = imageIn(*vertex.preprocessor);
      return {.kind = Kind::Rows, .shape = {image.elements()}};
    }
    const LayerRule* rule = vertex.isLayer ? ruleFor(vertex.type()) : nullptr;
    Reader here;
    if (rule != nullptr) here.kind = rule->takes;
    if (before == kToRows) {
      here.kind = Kind::Image;
      here.features = vertex.preprocessor->count({"numChannels"}, 0);
    } else if (vertex.isLayer) {
      const Options inner =
          vertex.options.find({"underlying"}) ? vertex.options.object({"underlying"}) : vertex.options;
      here.features = inner.count({"nin", "nIn"}, 0);
    }
    if (before == kToSteps) here.kind = Kind::Sequence;
    if (vertex.type() == "EmbeddingLayer") here.shape = {1};
    if (vertex.type() == "EmbeddingSequenceLayer")
      here.shape = {vertex.options.flag("inferInputLength", true) ? 0
                                                                  : vertex.options.count({"inputLength"}, 0)};
    if (!here.kind && (vertex.type() == "DenseLayer" || vertex.type() == "OutputLayer"))
      here.kind = Kind::Rows;
    const bool passes = vertex.type() != "MergeVertex" && vertex.type() != "SubsetVertex" && before.empty();
    if (passes && (!here.kind || here.features == 0)) {
      const Reader later = readerOf(vertex.name, seen);
      if (!here.kind) here.kind = later.kind;
      if (here.features == 0) here.features = later.features;
    }
    if (!found.kind) found.kind = here.kind;
    if (found.features == 0) found.features = here.features;
    if (found.shape.empty()) found.shape = here.shape;
  }
  return found;
}

Shape Converter::inputShape(const std::string& name, const Reader& reader) const {
  const auto advise = [&](std::string_view what, std::string_view example) {
    problems_.add({}, fmt::format("the file does not say {} of {}; state its shape, as in inputShapes={}",
                                  what, name, example));
    return Shape{1};
  };
  if (!reader.shape.empty()) return reader.shape;
  if (reader.features == 0) return advise("the number of features", "4");
  if (reader.kind == Kind::Sequence) return {0, reader.features};
  if (reader.kind != Kind::Image) return {reader.features};
  const auto [height, width] = sizes_.of(name);
  if (height == 0 || width == 0) return {reader.features, 0, 0};
  return {reader.features, height, width};
}

void Converter::addInputs() {
  const auto& names = description_.inputs;
  require(shapes_.empty() || shapes_.size() == names.size(),
          "the network has {} inputs, but {} shapes are given", names.size(), shapes_.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::set<std::string> seen;
    const Reader reader = readerOf(names[i], seen);
    inputs_.push_back({names[i], shapes_.empty() ? inputShape(names[i], reader) : shapes_[i]});
    kinds_[names[i]] = reader.kind.value_or(Kind::Rows);
  }
}

void Converter::append(Layer layer, std::vector<std::string> inputs) {
  std::string name(layer.module().name());
  vertices_.push_back({std::move(name), std::move(layer), std::move(inputs)});
}

Kind Converter::addPreprocessor(const Vertex& vertex, Kind kind) {
  const std::string type = vertex.preprocessorType();
  if (type.empty()) return kind;
  const Options& options = *vertex.preprocessor;
  requireChannelsFirst(options);
  if (type == kToRows && kind == Kind::Image) return Kind::Rows;  // by the layers' own flattening
  if (type == kToImages && kind == Kind::Rows) return Kind::Image;
  if ((type == kToSteps || type == kToSequence) && kind == Kind::Sequence) return Kind::Sequence;
  options.refuse("preprocessor " + type);
  return type == kToImages ? Kind::Image : kind;
}

LayerSettings Converter::settingsOf(const Vertex& vertex, const Converted& made) {
  LayerSettings settings{.frozen = vertex.frozen};
  if (made.parameters.empty()) return settings;
  if (vertex.stopsGradient && trained_)
    vertex.options.refuse("frozen after layers that are trained, which get no gradient there");
  trained_ = trained_ || !vertex.frozen;
  std::string key;
  if (!vertex.frozen) {
    const bool regularised = vertex.type() != "BatchNormalization";
    const Options inner =
        vertex.options.find({"underlying"})
            ? Options(vertex.options.object({"underlying"}).json(), vertex.options.place(), problems_)
            : vertex.options;
    settings.learningRate = training_.add(inner, regularised);
    key = TrainingReader::updaterKey(inner);
  }
  for (const auto& parameter : made.parameters)
    parameters_.push_back({parameter, parameter.trained ? key : std::string()});
  return settings;
}

void Converter::addLayer(const Vertex& vertex, const Reading& reading) {
  const LayerRule* rule = ruleFor(vertex.type());
  kinds_[vertex.name] = reading.kind;
  if (rule == nullptr) return vertex.options.refuse("muster has no such layer");
  Converted made = rule->convert(reading);
  kinds_[vertex.name] = made.kind;
  std::vector<Layer> before;
  if (vertex.preprocessorType() == kToImages)
    before.emplace_back(Reshape{.shape = imageIn(*vertex.preprocessor), .name = vertex.name + ".image"});
  if (vertex.preprocessorType() == kToRows && !made.layers.empty() &&
      !made.layers.front().module().wantsFlatInput())
    before.emplace_back(Flatten{.name = vertex.name + ".flat"});
  if (vertex.type() != "DropoutLayer")
    if (auto dropout = dropoutIn(vertex.options, vertex.name + ".dropout")) before.push_back(*dropout);
  const LayerSettings settings = settingsOf(vertex, made);
  for (auto& layer : made.layers)
    before.push_back(Layer(std::shared_ptr<const Module>(layer.module().clone()), settings));
  std::string input = vertex.inputs.front();
  if (const auto found = replaced_.find(input); found != replaced_.end()) input = found->second;
  for (auto& layer : before) {
    append(std::move(layer), {input});
    input = vertices_.back().name;
  }
}

void Converter::addVertex(const Vertex& vertex) {
  if (vertex.inputs.empty()) return vertex.options.refuse("it reads nothing");
  if (vertex.isLayer && vertex.inputs.size() > 1) return vertex.options.refuse("a layer of several inputs");
  const auto before = kinds_.find(vertex.inputs.front());
  if (before == kinds_.end()) return;  // it was refused
  const Kind kind = before->second;
  if (vertex.isLayer) {
    const Kind after = addPreprocessor(vertex, kind);
    auto size = sizes_.of(vertex.inputs.front());
    if (vertex.preprocessorType() == kToImages) {
      const Shape image = imageIn(*vertex.preprocessor);
      size = {image[1], image[2]};
    }
    return addLayer(vertex, {.options = vertex.options, .name = vertex.name, .kind = after, .size = size});
  }
  kinds_[vertex.name] = vertex.type() == "LastTimeStepVertex" ? Kind::Rows : kind;
  const auto layer = vertexOf(vertex.options, kind, vertex.name);
  if (!layer) return;
  std::vector<std::string> inputs = vertex.inputs;
  for (auto& input : inputs)
    if (const auto found = replaced_.find(input); found != replaced_.end()) input = found->second;
  append(*layer, std::move(inputs));
}

std::unique_ptr<Network> Converter::network() const {
  const TrainingOptions options = training_.options();
  if (description_.chain) {
    MultiLayerConfiguration chain{.seed = description_.seed,
                                  .updater = options.updater,
                                  .l1 = options.l1,
                                  .l2 = options.l2,
                                  .weightDecay = options.weightDecay,
                                  .clipValue = options.clipValue,
                                  .inputShape = inputs_.front().shape};
    for (const auto& vertex : vertices_) chain.layers.push_back(vertex.layer);
    return std::make_unique<MultiLayerNetwork>(std::move(chain));
  }
  ComputationGraphConfiguration graph{.seed = description_.seed,
                                      .updater = options.updater,
                                      .l1 = options.l1,
                                      .l2 = options.l2,
                                      .weightDecay = options.weightDecay,
                                      .clipValue = options.clipValue,
                                      .inputs = inputs_,
                                      .vertices = vertices_};
  for (const auto& name : description_.outputs) graph.addOutput(name);
  return std::make_unique<ComputationGraph>(std::move(graph));
}

Conversion Converter::run(const FirstLayers& first) {
  addInputs();
  if (!first.empty()) {
    if (inputs_.size() != 1) problems_.add({}, "a normaliser of a network with several inputs");
    std::string input = inputs_.front().name;
    for (const Layer& layer : first) {
      append(layer, {input});
      input = vertices_.back().name;
    }
    replaced_[inputs_.front().name] = input;
  }
  for (const Vertex& vertex : description_.vertices) addVertex(vertex);
  if (description_.truncated > 0) {
    const auto fits = [&](const GraphInput& input) {
      return kinds_.at(input.name) != Kind::Sequence ||
             (input.shape[0] > 0 && input.shape[0] <= description_.truncated);
    };
    if (!std::ranges::all_of(inputs_, fits))
      problems_.add({}, fmt::format("backpropType TruncatedBPTT with sequences of more than {} steps "
                                    "(tbpttFwdLength); inputShapes state shorter ones",
                                    description_.truncated));
  }
  require(problems_.empty(), "{}", problems_.text());
  return {network(), std::move(parameters_), training_.initialState()};
}

}  // namespace

Conversion convert(const Description& description, const std::vector<Shape>& shapes, const FirstLayers& first,
                   Problems& problems) {
  return Converter(description, shapes, problems).run(first);
}

}  // namespace muster::dl4j::detail
