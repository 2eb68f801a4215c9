// Layers of any input, outputs with their losses, and vertices of graphs.
#include "muster/core/base/error.h"
#include "muster/core/interop/dl4j/detail/rules.h"

namespace muster::dl4j::detail {
namespace {

void addDenseParameters(Converted& all, const std::string& name, bool bias) {
  all.parameters.push_back({.tensor = name + ".weight"});
  if (bias) all.parameters.push_back({.tensor = name + ".bias"});
}

Converted dense(const Reading& r) {
  const Options& o = r.options;
  if (o.flag("hasLayerNorm", false)) o.refuse("hasLayerNorm");
  const Dense layer{.units = o.count({"nout", "nOut"}, 0),
                    .activation = activationIn(o),
                    .init = initIn(o),
                    .bias = o.flag("hasBias", true),
                    .perStep = r.kind == Kind::Sequence,
                    .name = r.name};
  Converted all{.layers = {layer}, .kind = layer.perStep ? Kind::Sequence : Kind::Rows};
  addDenseParameters(all, r.name, layer.bias);
  return all;
}

/// A loss with the activation that belongs to it.
struct ReadLoss {
  Loss loss = Loss::MeanSquaredError;
  Activation activation = Activation::Identity;
  double weight = 1;
};

/// Losses there are sums over the outputs, except those called mean.
ReadLoss lossIn(const Options& o, std::int64_t outputs) {
  const Options loss = o.object({"lossFn"});
  const std::string type = loss.type();
  if (loss.find({"weights"})) o.refuse(type + " with weights");
  ReadLoss read{.activation = activationIn(o)};
  const auto only = [&](Loss here, Activation activation) {
    if (read.activation != activation)
      o.refuse(fmt::format("{} with the activation {}", type, nameOf(read.activation)));
    read.loss = here;
    read.activation = activation;
  };
  if (type == "LossMCXENT" || type == "LossNegativeLogLikelihood") {
    only(Loss::NegativeLogLikelihood, Activation::Softmax);
  } else if (type == "LossBinaryXENT") {
    only(Loss::BinaryCrossEntropy, Activation::Sigmoid);
    read.weight = static_cast<double>(outputs);
  } else if (type == "LossL2" || type == "LossL1") {
    read.loss = type == "LossL2" ? Loss::MeanSquaredError : Loss::MeanAbsoluteError;
    read.weight = static_cast<double>(outputs);
  } else if (type == "LossMAE") {
    read.loss = Loss::MeanAbsoluteError;
  } else if (type != "LossMSE") {
    o.refuse("loss " + (type.empty() ? "without a class" : type));
  }
  return read;
}

Converted outputOf(const Reading& r, bool perStep) {
  const Options& o = r.options;
  if (!perStep && r.kind == Kind::Sequence) o.refuse("an output of rows that reads a sequence");
  if (perStep) requireChannelsFirst(o);
  const std::int64_t outputs = o.count({"nout", "nOut"}, 0);
  const ReadLoss loss = lossIn(o, outputs);
  const Output output{.classes = outputs,
                      .loss = loss.loss,
                      .activation = loss.activation,
                      .init = initIn(o),
                      .bias = o.flag("hasBias", true),
                      .perStep = perStep,
                      .lossMean = perStep ? LossMean::Examples : LossMean::Rows,
                      .lossWeight = loss.weight,
                      .name = r.name};
  Converted all{.layers = {output}, .kind = perStep ? Kind::Sequence : Kind::Rows};
  addDenseParameters(all, r.name, output.bias);
  return all;
}

Converted output(const Reading& r) {
  return outputOf(r, false);
}

Converted outputOfSteps(const Reading& r) {
  return outputOf(r, true);
}

/// Its activation is not used there.
Converted batchNorm(const Reading& r) {
  const Options& o = r.options;
  requireChannelsFirst(o);
  if (r.kind == Kind::Sequence) o.refuse("batch normalisation of sequences");
  if (!o.flag("minibatch", true)) o.refuse("minibatch false");
  const bool locked = o.flag("lockGammaBeta", false);
  if (locked && (o.number({"gamma"}, 1) != 1 || o.number({"beta"}, 0) != 0))
    o.refuse("a locked gamma other than 1 or beta other than 0");
  const BatchNorm norm{.momentum = 1 - o.number({"decay"}, 0.9),
                       .epsilon = o.number({"eps"}, 1e-5),
                       .affine = !locked,
                       .name = r.name};
  Converted all{.layers = {norm}, .kind = r.kind};
  if (norm.affine)
    for (const auto* const tensor : {".gamma", ".beta"})
      all.parameters.push_back({.tensor = r.name + tensor});
  all.parameters.push_back({.tensor = r.name + ".mean", .trained = false});
  all.parameters.push_back({.tensor = r.name + ".variance",
                            .coding = o.flag("useLogStd", false) ? Coding::LogDeviation : Coding::Same,
                            .trained = false});
  return all;
}

Converted activation(const Reading& r) {
  return {.layers = {ActivationLayer{.activation = activationIn(r.options), .name = r.name}}, .kind = r.kind};
}

Converted dropout(const Reading& r) {
  Converted all{.kind = r.kind};
  if (auto layer = dropoutIn(r.options, r.name)) all.layers.push_back(*layer);
  if (all.layers.empty())
    all.layers.emplace_back(ActivationLayer{.activation = Activation::Identity, .name = r.name});
  return all;
}

Converted globalPooling(const Reading& r) {
  const Options& o = r.options;
  const std::string type = o.word({"poolingType"}, "MAX");
  if (type != "MAX" && type != "AVG") o.refuse("pooling " + type);
  if (o.find({"poolingDimensions"})) o.refuse("poolingDimensions");
  const bool flat = o.flag("collapseDimensions", true);
  Converted all{.kind = Kind::Rows};
  if (r.kind == Kind::Image) {
    all.layers.emplace_back(GlobalPool2d{.kind = type == "MAX" ? PoolKind::Max : PoolKind::Average,
                                         .name = flat ? r.name + ".pool" : r.name});
    if (flat) all.layers.emplace_back(Flatten{.name = r.name});
    if (!flat) all.kind = Kind::Image;
  } else {
    if (r.kind == Kind::Rows) o.refuse("pooling of rows");
    if (type == "MAX") o.refuse("maximum over the steps of a sequence");
    if (!flat) o.refuse("collapseDimensions false");
    all.layers.emplace_back(MeanOverTime{.name = r.name});
  }
  return all;
}

}  // namespace

std::vector<LayerRule> otherRules() {
  return {{"DenseLayer", &dense},
          {"OutputLayer", &output},
          {"RnnOutputLayer", &outputOfSteps, Kind::Sequence},
          {"BatchNormalization", &batchNorm},
          {"ActivationLayer", &activation},
          {"DropoutLayer", &dropout},
          {"GlobalPoolingLayer", &globalPooling}};
}

std::optional<Layer> vertexOf(const Options& vertex, Kind kind, const std::string& name) {
  const std::string type = vertex.type();
  if (type == "ElementWiseVertex") {
    const std::string op = vertex.word({"op"});
    const std::pair<std::string_view, Combination> known[] = {{"Add", Combination::Add},
                                                              {"Subtract", Combination::Subtract},
                                                              {"Product", Combination::Product},
                                                              {"Average", Combination::Average},
                                                              {"Max", Combination::Max}};
    for (const auto& [word, combination] : known)
      if (op == word) return Combine{.combination = combination, .name = name};
    vertex.refuse("op " + op);
    return std::nullopt;
  }
  if (type == "MergeVertex") {
    if (vertex.count({"mergeAxis"}, 1) != 1) vertex.refuse("a merge along another axis than the features");
    return Merge{.name = name};
  }
  if (type == "SubsetVertex")
    return Subset{.from = vertex.count({"from"}, 0), .to = vertex.count({"to"}, 0) + 1, .name = name};
  if (type == "ScaleVertex") return Scale{.factor = vertex.number({"scaleFactor"}, 1), .name = name};
  if (type == "LastTimeStepVertex") {
    if (kind != Kind::Sequence) vertex.refuse("the last step of what is no sequence");
    return LastStep{.name = name};
  }
  vertex.refuse("muster has no such vertex");
  return std::nullopt;
}

}  // namespace muster::dl4j::detail
