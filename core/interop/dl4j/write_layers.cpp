#include <boost/json/array.hpp>
#include <optional>
#include <span>

#include "muster/core/base/error.h"
#include "muster/core/interop/dl4j/detail/written_layer.h"
#include "muster/core/io/json_fields.h"
#include "muster/core/nn/layers.h"
#include "muster/core/optim/schedules.h"

namespace muster::dl4j::detail {
namespace {

namespace json = boost::json;
using muster::detail::NetworkNode;

constexpr std::string_view kLayers = "org.deeplearning4j.nn.conf.layers.";
constexpr std::string_view kGraph = "org.deeplearning4j.nn.conf.graph.";

json::object classed(std::string_view prefix, std::string_view name) {
  return {{"@class", std::string(prefix) + std::string(name)}};
}

json::array pairOf(const std::array<std::int64_t, 2>& values) {
  return {values[0], values[1]};
}

/// The options of a node, if its type is T.
template <typename T>
std::optional<T> optionsOf(const NetworkNode& node) {
  if (node.module->type() != T::kType) return std::nullopt;
  JsonWriter writer;
  node.module->clone()->fields(writer);
  JsonReader reader(writer.text());
  T options;
  options.fields(reader);
  return options;
}

/// An updater, if its type is T.
template <typename T>
std::optional<T> ruleOf(const Updater& updater) {
  if (updater.type() != T::kType) return std::nullopt;
  JsonWriter writer;
  Updater(updater).field("it", writer);
  JsonReader reader(writer.text());
  T rule;
  std::string type;
  reader.object("it", type, [&](Fields& fields) {
    rule.learningRate.field("learningRate", fields);
    rule.fields(fields);
  });
  return rule;
}

json::object fixedSchedule(double value) {
  json::object schedule = classed("org.nd4j.linalg.schedule.", "FixedSchedule");
  schedule["value"] = value;
  return schedule;
}

json::array regularisation(const TrainingOptions& training) {
  json::array all;
  const auto add = [&](std::string_view type, std::string_view name, double value) -> json::object* {
    if (value == 0) return nullptr;
    json::object term = classed("org.nd4j.linalg.learning.regularization.", type);
    term[name] = fixedSchedule(value);
    return &all.emplace_back(std::move(term)).get_object();
  };
  double decay = training.weightDecay;
  if (const auto settings = training.updater.settings()) decay += settings->weightDecay;
  add("L1Regularization", "l1", training.l1);
  add("L2Regularization", "l2", training.l2);
  if (json::object* term = add("WeightDecay", "coeff", decay)) (*term)["applyLR"] = true;
  return all;
}

/// The numbers of a schedule that is no constant; empty if there is no such schedule there.
json::object scheduleOf(const Schedule& schedule) {
  JsonWriter writer;
  Schedule copy = schedule;
  copy.field("it", writer);
  JsonReader reader(writer.text());
  json::object there;
  const auto read = [&](auto rule, std::string_view type, const auto& fill) {
    if (schedule.type() != rule.kType) return;
    std::string kind;
    reader.object("it", kind, [&](Fields& fields) { rule.fields(fields); });
    there = classed("org.nd4j.linalg.schedule.", type);
    fill(rule);
  };
  read(StepSchedule{}, "StepSchedule", [&](const StepSchedule& s) {
    there["scheduleType"] = "ITERATION";
    there["initialValue"] = s.initial;
    there["decayRate"] = s.decay;
    there["step"] = static_cast<double>(s.every);
  });
  read(ExponentialSchedule{}, "ExponentialSchedule", [&](const ExponentialSchedule& s) {
    there["scheduleType"] = "ITERATION";
    there["initialValue"] = s.initial;
    there["gamma"] = s.decay;
  });
  read(WarmUpSchedule{}, "RampSchedule", [&](const WarmUpSchedule& s) {
    there["baseSchedule"] =
        s.then.type() == FixedSchedule::kType ? fixedSchedule(s.then.at(0)) : scheduleOf(s.then);
    there["numIter"] = s.iterations;
    if (there["baseSchedule"].get_object().empty()) there.clear();
  });
  return there;
}

}  // namespace

void LayerWriter::refuse(const NetworkNode& node, std::string_view text) {
  problems_.add(fmt::format("layer {} ({})", node.name, node.module->type()), text);
}

json::value LayerWriter::activation(const NetworkNode& node, Activation activation) {
  const auto named = [](std::string_view name) {
    return classed("org.nd4j.linalg.activations.impl.", name);
  };
  switch (activation) {
    case Activation::Identity:
      return named("ActivationIdentity");
    case Activation::ReLU: {
      json::object relu = named("ActivationReLU");
      for (const auto* const option : {"max", "negativeSlope", "threshold"}) relu[option] = nullptr;
      return relu;
    }
    case Activation::LeakyReLU: {
      json::object leaky = named("ActivationLReLU");
      leaky["alpha"] = 0.01;
      return leaky;
    }
    case Activation::Tanh:
      return named("ActivationTanH");
    case Activation::Sigmoid:
      return named("ActivationSigmoid");
    case Activation::Softmax:
      return named("ActivationSoftmax");
    default:
      refuse(node, fmt::format("the activation {}", nameOf(activation)));
      return nullptr;
  }
}

json::object LayerWriter::updater(const NetworkNode& node) {
  const Updater& here = training_.updater;
  const auto named = [](std::string_view name) { return classed("org.nd4j.linalg.learning.config.", name); };
  json::object there;
  if (ruleOf<Sgd>(here)) there = named("Sgd");
  if (const auto rule = ruleOf<Nesterovs>(here)) {
    there = named("Nesterovs");
    there["momentum"] = rule->momentum;
  }
  const auto adam = [&](const auto& rule) {
    there = named("Adam");
    there["beta1"] = rule.beta1;
    there["beta2"] = rule.beta2;
    there["epsilon"] = rule.epsilon;
  };
  if (const auto rule = ruleOf<Adam>(here)) adam(*rule);
  if (const auto rule = ruleOf<AdamW>(here)) adam(*rule);
  if (const auto rule = ruleOf<RmsProp>(here)) {
    there = named("RmsProp");
    there["epsilon"] = rule->epsilon;
    there["rmsDecay"] = rule->decay;
  }
  if (const auto rule = ruleOf<AdaGrad>(here)) {
    there = named("AdaGrad");
    there["epsilon"] = rule->epsilon;
  }
  if (there.empty()) problems_.add({}, fmt::format("the updater {}", here.type()));
  const Schedule& rate = here.learningRate();
  there["learningRate"] = rate.at(0) * node.settings.learningRate;
  if (rate.type() == FixedSchedule::kType) return there;
  json::object schedule = scheduleOf(rate);
  if (schedule.empty()) problems_.add({}, fmt::format("learning rates by the schedule {}", rate.type()));
  if (node.settings.learningRate != 1) refuse(node, "a learning rate of its own together with a schedule");
  there["learningRateSchedule"] = std::move(schedule);
  return there;
}

json::object LayerWriter::layer(const NetworkNode& node, std::string_view type) const {
  json::object there = classed(kLayers, type);
  there["constraints"] = nullptr;
  there["idropout"] = nullptr;
  there["layerName"] = node.name;
  return there;
}

json::object LayerWriter::trained(const NetworkNode& node, std::string_view type, Activation function,
                                  const Init& init) {
  json::object there = layer(node, type);
  const bool clipped = training_.clipValue > 0;
  there["activationFn"] = activation(node, function);
  there["biasInit"] = 0.0;
  there["biasUpdater"] = nullptr;
  there["gainInit"] = 1.0;
  there["gradientNormalization"] = clipped ? "ClipElementWiseAbsoluteValue" : "None";
  there["gradientNormalizationThreshold"] = clipped ? training_.clipValue : 1.0;
  there["iupdater"] = updater(node);
  there["regularization"] = regularisation(training_);
  there["regularizationBias"] = json::array();
  there["timeDistributedFormat"] = nullptr;
  there["weightInitFn"] = classed("org.deeplearning4j.nn.weights.",
                                  init.kind == InitKind::He ? "WeightInitRelu" : "WeightInitXavier");
  there["weightNoise"] = nullptr;
  if (!node.inputShapes.empty()) there["nin"] = node.inputShapes.front()[node.inputShapes.front().rank() == 3 ? 0 : -1];
  return there;
}

json::value LayerWriter::preprocessor(Form from, Form to, const Shape& shape, std::string_view place) {
  const auto named = [](std::string_view name) {
    return classed("org.deeplearning4j.nn.conf.preprocessor.", name);
  };
  const auto image = [&](json::object there) {
    there["inputHeight"] = shape[1];
    there["inputWidth"] = shape[2];
    there["numChannels"] = shape[0];
    return there;
  };
  if (from == to) return nullptr;
  if (from == Form::Image && to == Form::Rows) {
    json::object there = image(named("CnnToFeedForwardPreProcessor"));
    there["format"] = "NCHW";
    return there;
  }
  if (from == Form::Rows && to == Form::Image) return image(named("FeedForwardToCnnPreProcessor"));
  if (from == Form::Sequence && to == Form::Steps) {
    json::object there = named("RnnToFeedForwardPreProcessor");
    there["rnnDataFormat"] = "NCW";
    return there;
  }
  if (from == Form::Steps && to == Form::Sequence) {
    json::object there = named("FeedForwardToRnnPreProcessor");
    there["rnnDataFormat"] = "NCW";
    return there;
  }
  problems_.add(place, "it reads values of a form that Deeplearning4j does not turn into another");
  return nullptr;
}

std::vector<WrittenLayer> LayerWriter::write(const NetworkNode& node, Form form) {
  const std::string& name = node.name;
  const Shape& in = node.inputShapes.front();
  const auto one = [&](json::object there, Form takes, Form gives, std::vector<std::string> variables = {}) {
    return std::vector<WrittenLayer>{{name, true, std::move(there), std::move(variables), takes, gives}};
  };
  const auto vertex = [&](json::object there, Form gives) {
    return std::vector<WrittenLayer>{{name, false, std::move(there), {}, form, gives}};
  };
  // Adds what Deeplearning4j has as a layer of its own after another.
  const auto withActivation = [&](std::vector<WrittenLayer> all, Activation function) {
    if (function == Activation::Identity) return all;
    json::object there = layer(node, "ActivationLayer");
    there["activationFn"] = activation(node, function);
    there["layerName"] = name + ".activation";
    all.push_back({name + ".activation", true, std::move(there), {}, all.back().gives, all.back().gives});
    return all;
  };

  if (const auto o = optionsOf<Dense>(node)) {
    json::object there = trained(node, "DenseLayer", o->activation, o->init);
    there["hasBias"] = o->bias;
    there["hasLayerNorm"] = false;
    there["nout"] = o->units;
    const Form at = o->perStep ? Form::Steps : Form::Rows;
    return one(std::move(there), at, at, o->bias ? std::vector<std::string>{"W", "b"} : std::vector<std::string>{"W"});
  }
  if (const auto o = optionsOf<Output>(node)) {
    json::object there = trained(node, o->perStep ? "RnnOutputLayer" : "OutputLayer", o->activation, o->init);
    there["hasBias"] = o->bias;
    there["nout"] = o->classes;
    if (o->perStep) there["rnnDataFormat"] = "NCW";
    const auto loss = [](std::string_view type) { return classed("org.nd4j.linalg.lossfunctions.impl.", type); };
    const auto classes = static_cast<double>(o->classes);
    json::object lossFn;
    double weight = 1;
    if (o->loss == Loss::NegativeLogLikelihood) {
      lossFn = loss("LossMCXENT");
      lossFn["softmaxClipEps"] = 1e-10;
    } else if (o->loss == Loss::BinaryCrossEntropy) {
      lossFn = loss("LossBinaryXENT");
      lossFn["clipEps"] = 1e-5;
      weight = classes;
    } else if (o->loss == Loss::MeanSquaredError) {
      lossFn = loss(o->lossWeight == classes && classes != 1 ? "LossL2" : "LossMSE");
      if (o->lossWeight == classes) weight = classes;
    } else {
      refuse(node, fmt::format("the loss {}", nameOf(o->loss)));
    }
    if (o->lossWeight != weight)
      refuse(node, fmt::format("a lossWeight of {}, where there it is {}", o->lossWeight, weight));
    if (o->perStep && o->lossMean != LossMean::Examples)
      refuse(node, "a lossMean over rows, where there it is over examples");
    there["lossFn"] = std::move(lossFn);
    const Form at = o->perStep ? Form::Sequence : Form::Rows;
    return one(std::move(there), at, at, o->bias ? std::vector<std::string>{"W", "b"} : std::vector<std::string>{"W"});
  }
  if (const auto o = optionsOf<Conv2d>(node)) {
    const bool depthwise = o->groups > 1 && o->groups == in[0];
    if (o->groups > 1 && !depthwise) refuse(node, fmt::format("{} groups of {} channels", o->groups, in[0]));
    json::object there =
        trained(node, depthwise ? "DepthwiseConvolution2D" : "ConvolutionLayer", o->activation, o->init);
    there["cnn2dDataFormat"] = "NCHW";
    there["convolutionMode"] = "Truncate";
    there["cudnnAlgoMode"] = "PREFER_FASTEST";
    there["cudnnAllowFallback"] = true;
    for (const auto* const none : {"cudnnBwdDataAlgo", "cudnnBwdFilterAlgo", "cudnnFwdAlgo"}) there[none] = nullptr;
    there["dilation"] = pairOf(o->dilation);
    there["hasBias"] = o->bias;
    there["kernelSize"] = pairOf(o->kernel);
    there["nout"] = o->outChannels;
    there["padding"] = pairOf(o->padding);
    there["stride"] = pairOf(o->stride);
    if (depthwise) there["depthMultiplier"] = o->outChannels / in[0];
    return one(std::move(there), Form::Image, Form::Image,
               o->bias ? std::vector<std::string>{"W", "b"} : std::vector<std::string>{"W"});
  }
  if (const auto o = optionsOf<ConvTranspose2d>(node)) {
    if (o->groups != 1) refuse(node, "groups");
    if (o->outputPadding != std::array<std::int64_t, 2>{0, 0}) refuse(node, "outputPadding");
    json::object there = trained(node, "Deconvolution2D", o->activation, o->init);
    there["cnn2dDataFormat"] = "NCHW";
    there["convolutionMode"] = "Truncate";
    there["dilation"] = pairOf(o->dilation);
    there["hasBias"] = o->bias;
    there["kernelSize"] = pairOf(o->kernel);
    there["nout"] = o->outChannels;
    there["padding"] = pairOf(o->padding);
    there["stride"] = pairOf(o->stride);
    return one(std::move(there), Form::Image, Form::Image,
               o->bias ? std::vector<std::string>{"W", "b"} : std::vector<std::string>{"W"});
  }
  const auto pooling = [&](const auto& o, std::string_view kind) {
    json::object there = layer(node, "SubsamplingLayer");
    std::array<std::int64_t, 2> stride = o.stride;
    for (std::size_t i = 0; i < 2; ++i)
      if (stride[i] == 0) stride[i] = o.kernel[i];
    there["avgPoolIncludePadInDivisor"] = kind == "AVG";
    there["cnn2dDataFormat"] = "NCHW";
    there["convolutionMode"] = "Truncate";
    there["cudnnAllowFallback"] = true;
    there["dilation"] = json::array{1, 1};
    there["eps"] = 1e-8;
    there["kernelSize"] = pairOf(o.kernel);
    there["padding"] = pairOf(o.padding);
    there["pnorm"] = 0;
    there["poolingType"] = kind;
    there["stride"] = pairOf(stride);
    return one(std::move(there), Form::Image, Form::Image);
  };
  if (const auto o = optionsOf<MaxPool2d>(node)) return pooling(*o, "MAX");
  if (const auto o = optionsOf<AveragePool2d>(node)) return pooling(*o, "AVG");
  if (const auto o = optionsOf<GlobalPool2d>(node)) {
    json::object there = layer(node, "GlobalPoolingLayer");
    there["collapseDimensions"] = false;
    there["pnorm"] = 2;
    there["poolingDimensions"] = nullptr;
    there["poolingType"] = o->kind == PoolKind::Max ? "MAX" : "AVG";
    return one(std::move(there), Form::Image, Form::Image);
  }
  if (optionsOf<MeanOverTime>(node)) {
    json::object there = layer(node, "GlobalPoolingLayer");
    there["collapseDimensions"] = true;
    there["pnorm"] = 2;
    there["poolingDimensions"] = nullptr;
    there["poolingType"] = "AVG";
    return one(std::move(there), Form::Sequence, Form::Rows);
  }
  if (const auto o = optionsOf<Upsample2d>(node)) {
    if (o->mode != UpsampleMode::Nearest) refuse(node, "bilinear enlargement");
    json::object there = layer(node, "Upsampling2D");
    there["format"] = "NCHW";
    there["size"] = pairOf(o->scale);
    return one(std::move(there), Form::Image, Form::Image);
  }
  if (const auto o = optionsOf<ZeroPad2d>(node)) {
    json::object there = layer(node, "ZeroPaddingLayer");
    there["dataFormat"] = "NCHW";
    there["padding"] = json::array{o->padding[0], o->padding[1], o->padding[2], o->padding[3]};
    return one(std::move(there), Form::Image, Form::Image);
  }
  if (const auto o = optionsOf<BatchNorm>(node)) {
    if (form != Form::Image && form != Form::Rows) refuse(node, "batch normalisation of sequences");
    json::object there = trained(node, "BatchNormalization", Activation::Sigmoid, Init::xavier());
    there["beta"] = 0.0;
    there["cnn2DFormat"] = "NCHW";
    there["cudnnAllowFallback"] = true;
    there["decay"] = 1 - o->momentum;
    there["eps"] = o->epsilon;
    there["gamma"] = 1.0;
    there["lockGammaBeta"] = !o->affine;
    there["minibatch"] = true;
    there["nout"] = in[0];
    there["useLogStd"] = false;  // logarithms would not come back to the same bits
    std::vector<std::string> variables{"mean", "var"};
    if (o->affine) variables.insert(variables.begin(), {"gamma", "beta"});
    return withActivation(one(std::move(there), form, form, std::move(variables)), o->activation);
  }
  if (const auto o = optionsOf<LSTM>(node)) {
    json::object there = trained(node, "LSTM", Activation::Tanh, o->init);
    there["forgetGateBiasInit"] = o->forgetBias;
    there["gateActivationFn"] = activation(node, Activation::Sigmoid);
    there["helperAllowFallback"] = true;
    there["nout"] = o->units;
    there["rnnDataFormat"] = "NCW";
    there["weightInitFnRecurrent"] = nullptr;
    const std::vector<std::string> variables{"W", "RW", "b"};
    if (o->returnSequences) return one(std::move(there), Form::Sequence, Form::Sequence, variables);
    json::object last = classed(kLayers, "recurrent.LastTimeStep");
    last["layerName"] = name;
    last["underlying"] = std::move(there);
    return one(std::move(last), Form::Sequence, Form::Rows, variables);
  }
  if (const auto o = optionsOf<Embedding>(node)) {
    json::object there = trained(node, "EmbeddingSequenceLayer", Activation::Identity, o->init);
    there["hasBias"] = false;
    there["inferInputLength"] = false;
    there["inputLength"] = in[0];
    there["nin"] = o->vocabulary;
    there["nout"] = o->features;
    there["outputFormat"] = "NCW";
    return one(std::move(there), Form::Rows, Form::Sequence, {"W"});
  }
  if (const auto o = optionsOf<Conv1d>(node)) {
    if (o->groups != 1) refuse(node, "groups");
    json::object there = trained(node, "Convolution1DLayer", o->activation, o->init);
    there["nin"] = in[1];
    there["convolutionMode"] = o->causal ? "Causal" : "Truncate";
    there["dilation"] = json::array{o->dilation, 1};
    there["hasBias"] = o->bias;
    there["kernelSize"] = json::array{o->kernel, 1};
    there["nout"] = o->outChannels;
    there["padding"] = json::array{o->padding, 0};
    there["rnnDataFormat"] = "NCW";
    there["stride"] = json::array{o->stride, 1};
    return one(std::move(there), Form::Sequence, Form::Sequence,
               o->bias ? std::vector<std::string>{"W", "b"} : std::vector<std::string>{"W"});
  }
  const auto poolingAlong = [&](const auto& o, std::string_view kind) {
    json::object there = layer(node, "Subsampling1DLayer");
    there["avgPoolIncludePadInDivisor"] = kind == "AVG";
    there["convolutionMode"] = "Truncate";
    there["dilation"] = json::array{1, 1};
    there["kernelSize"] = json::array{o.kernel, 1};
    there["padding"] = json::array{o.padding, 0};
    there["poolingType"] = kind;
    there["stride"] = json::array{o.stride == 0 ? o.kernel : o.stride, 1};
    return one(std::move(there), Form::Sequence, Form::Sequence);
  };
  if (const auto o = optionsOf<MaxPool1d>(node)) return poolingAlong(*o, "MAX");
  if (const auto o = optionsOf<AveragePool1d>(node)) return poolingAlong(*o, "AVG");
  if (const auto o = optionsOf<ActivationLayer>(node)) {
    if (o->activation == Activation::Softmax && form == Form::Image) refuse(node, "softmax of images");
    json::object there = layer(node, "ActivationLayer");
    there["activationFn"] = activation(node, o->activation);
    return one(std::move(there), form, form);
  }
  if (const auto o = optionsOf<Dropout>(node)) {
    json::object there = layer(node, "DropoutLayer"), dropout = classed("org.deeplearning4j.nn.conf.dropout.", "Dropout");
    dropout["p"] = 1 - o->rate;
    there["idropout"] = std::move(dropout);
    return one(std::move(there), form, form);
  }
  if (optionsOf<Flatten>(node)) {
    if (form == Form::Sequence || form == Form::Steps) refuse(node, "a sequence as one row");
    return {};
  }
  if (const auto o = optionsOf<Reshape>(node)) {
    if (form != Form::Rows || o->shape.rank() != 3) refuse(node, "a change of shape other than from rows to images");
    return {};
  }
  if (optionsOf<LastStep>(node)) {
    json::object there = classed(kGraph, "rnn.LastTimeStepVertex");
    there["maskArrayInputName"] = nullptr;
    return vertex(std::move(there), Form::Rows);
  }
  if (const auto o = optionsOf<Combine>(node)) {
    const std::pair<Combination, std::string_view> names[] = {{Combination::Add, "Add"},
                                                              {Combination::Subtract, "Subtract"},
                                                              {Combination::Product, "Product"},
                                                              {Combination::Average, "Average"},
                                                              {Combination::Max, "Max"}};
    json::object there = classed(kGraph, "ElementWiseVertex");
    for (const auto& [combination, op] : names)
      if (combination == o->combination) there["op"] = op;
    return withActivation(vertex(std::move(there), form), o->activation);
  }
  if (const auto o = optionsOf<Merge>(node)) {
    if (o->axis != -1 && o->axis != (form == Form::Image ? 0 : in.rank() - 1)) refuse(node, "another axis than the features");
    json::object there = classed(kGraph, "MergeVertex");
    there["mergeAxis"] = 1;
    return vertex(std::move(there), form);
  }
  if (const auto o = optionsOf<Subset>(node)) {
    if (o->axis != -1 && o->axis != (form == Form::Image ? 0 : in.rank() - 1)) refuse(node, "another axis than the features");
    json::object there = classed(kGraph, "SubsetVertex");
    there["from"] = o->from;
    there["to"] = o->to - 1;
    return vertex(std::move(there), form);
  }
  if (const auto o = optionsOf<Scale>(node)) {
    json::object there = classed(kGraph, "ScaleVertex");
    there["scaleFactor"] = o->factor;
    return vertex(std::move(there), form);
  }
  refuse(node, "Deeplearning4j has no such layer");
  return {};
}

}  // namespace muster::dl4j::detail
