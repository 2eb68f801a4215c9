#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/interop/dl4j/detail/written_layer.h"

namespace muster::dl4j::detail {

namespace json = boost::json;
using muster::detail::NetworkNode;

json::object classed(std::string_view prefix, std::string_view name) {
  return {{"@class", std::string(prefix) + std::string(name)}};
}

json::array pairOf(const std::array<std::int64_t, 2>& values) {
  return {values[0], values[1]};
}

std::vector<std::string> weightNames(bool bias) {
  if (bias) return {"W", "b"};
  return {"W"};
}

void Writing::refuse(std::string_view text) const {
  problems_.add(fmt::format("layer {} ({})", node_.name, node_.module->type()), text);
}

void Writing::differ(std::string_view text) const {
  logWarning("dl4j::save: layer {}: {}", node_.name, text);
}

json::value Writing::activation(Activation function) const {
  const auto named = [](std::string_view name) { return classed("org.nd4j.linalg.activations.impl.", name); };
  json::object there;
  switch (function) {
    case Activation::Identity:
      return named("ActivationIdentity");
    case Activation::ReLU:
      there = named("ActivationReLU");
      for (const auto* const option : {"max", "negativeSlope", "threshold"}) there[option] = nullptr;
      return there;
    case Activation::LeakyReLU:
      there = named("ActivationLReLU");
      there["alpha"] = 0.01;
      return there;
    case Activation::Tanh:
      return named("ActivationTanH");
    case Activation::Sigmoid:
      return named("ActivationSigmoid");
    case Activation::Softmax:
      return named("ActivationSoftmax");
    default:
      refuse(fmt::format("the activation {}", nameOf(function)));
      return nullptr;
  }
}

json::object Writing::layer(std::string_view type) const {
  json::object there = classed(kLayers, type);
  there["constraints"] = nullptr;
  there["idropout"] = nullptr;
  there["layerName"] = name();
  return there;
}

json::object Writing::trained(std::string_view type, Activation function, const Init& init) const {
  json::object there = layer(type);
  const bool clipped = training_.clipValue > 0;
  there["activationFn"] = activation(function);
  there["biasInit"] = 0.0;
  there["biasUpdater"] = nullptr;
  there["gainInit"] = 1.0;
  there["gradientNormalization"] = clipped ? "ClipElementWiseAbsoluteValue" : "None";
  there["gradientNormalizationThreshold"] = clipped ? training_.clipValue : 1.0;
  there["iupdater"] = updaterJson(training_.updater, node_.settings.learningRate, problems_);
  there["nin"] = input()[form_ == Form::Image && input().rank() == 3 ? 0 : -1];
  there["regularization"] = regularisationJson(training_);
  there["regularizationBias"] = json::array();
  there["timeDistributedFormat"] = nullptr;
  there["weightInitFn"] = classed("org.deeplearning4j.nn.weights.",
                                  init.kind == InitKind::He ? "WeightInitRelu" : "WeightInitXavier");
  there["weightNoise"] = nullptr;
  return there;
}

WrittenLayers Writing::layer(json::object there, Form takes, Form gives,
                             std::vector<std::string> variables) const {
  return {{name(), true, std::move(there), std::move(variables), takes, gives}};
}

WrittenLayers Writing::vertex(json::object there, Form gives) const {
  return {{name(), false, std::move(there), {}, form_, gives}};
}

WrittenLayers Writing::activated(WrittenLayers layers, Activation function) const {
  if (function == Activation::Identity) return layers;
  json::object there = layer("ActivationLayer");
  there["activationFn"] = activation(function);
  there["layerName"] = name() + ".activation";
  const Form form = layers.back().gives;
  layers.push_back({name() + ".activation", true, std::move(there), {}, form, form});
  return layers;
}

WrittenLayers writeNode(const NetworkNode& node, Form form, const TrainingOptions& training,
                        Problems& problems) {
  static const std::vector<WriteRule> rules = [] {
    std::vector<WriteRule> all = imageWriteRules();
    for (const auto& more : {sequenceWriteRules(), otherWriteRules()})
      all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  const Writing to(node, form, training, problems);
  const auto found = std::ranges::find(rules, node.module->type(), &WriteRule::type);
  if (found != rules.end()) return found->write(node, to);
  to.refuse("Deeplearning4j has no such layer");
  return {};
}

json::value preprocessorOf(Form from, Form to, const Shape& shape, std::string_view place,
                           Problems& problems) {
  if (from == to) return nullptr;
  const auto named = [](std::string_view name) {
    return classed("org.deeplearning4j.nn.conf.preprocessor.", name);
  };
  const bool toRows = from == Form::Image && to == Form::Rows;
  json::object there;
  if (toRows || (from == Form::Rows && to == Form::Image)) {
    there = named(toRows ? "CnnToFeedForwardPreProcessor" : "FeedForwardToCnnPreProcessor");
    if (toRows) there["format"] = "NCHW";
    there["inputHeight"] = shape[1];
    there["inputWidth"] = shape[2];
    there["numChannels"] = shape[0];
  } else if (from == Form::Sequence && to == Form::Steps) {
    there = named("RnnToFeedForwardPreProcessor");
    there["rnnDataFormat"] = "NCW";
  } else if (from == Form::Steps && to == Form::Sequence) {
    there = named("FeedForwardToRnnPreProcessor");
    there["rnnDataFormat"] = "NCW";
  } else {
    problems.add(place, "it reads values of a form that Deeplearning4j does not turn into another");
    return nullptr;
  }
  return there;
}

}  // namespace muster::dl4j::detail
