// Layers of sequences.
#include "muster/core/base/error.h"
#include "muster/core/interop/dl4j/detail/rules.h"

namespace muster::dl4j::detail {
namespace {

Converted recurrent(const Reading& r, bool returnSequences) {
  const Options& o = r.options;
  requireChannelsFirst(o);
  if (activationIn(o) != Activation::Tanh) o.refuse("an activation other than ActivationTanH");
  if (const auto gates = o.object({"gateActivationFn"}).type(); gates != "ActivationSigmoid")
    o.refuse("gates with " + (gates.empty() ? "no activation" : gates));
  const LSTM lstm{.units = o.count({"nout", "nOut"}, 0),
                  .returnSequences = returnSequences,
                  .forgetBias = o.number({"forgetGateBiasInit"}, 1),
                  .init = initIn(o),
                  .recurrentInit = initIn(o),
                  .name = r.name};
  Converted all{.layers = {lstm}, .kind = returnSequences ? Kind::Sequence : Kind::Rows};
  for (const auto* const tensor : {".weight", ".recurrentWeight", ".bias"})
    all.parameters.push_back({.tensor = r.name + tensor, .order = {.gates = true}});
  return all;
}

Converted lstm(const Reading& r) {
  return recurrent(r, true);
}

Converted lastTimeStep(const Reading& r) {
  const Options inner = r.options.object({"underlying"});
  if (inner.type() == "LSTM") return recurrent({.options = inner, .name = r.name, .kind = r.kind}, false);
  r.options.refuse("the last step of " + (inner.type().empty() ? "no layer" : inner.type()));
  return {};
}

Converted timeDistributed(const Reading& r) {
  const Options inner = r.options.object({"underlying"});
  const LayerRule* rule = inner.type() == "DenseLayer" ? ruleFor(inner.type()) : nullptr;
  if (rule != nullptr) return rule->convert({.options = inner, .name = r.name, .kind = Kind::Sequence});
  r.options.refuse("at each step " + (inner.type().empty() ? "no layer" : inner.type()));
  return {};
}

/// The first number of an option that may have one for each of two dimensions.
std::int64_t first(const Options& o, std::string_view name, std::int64_t preset) {
  const auto all = o.counts(name);
  return all.empty() ? preset : all.front();
}

/// The padding on each side of a sequence.
std::int64_t paddingAlong(const Options& o, std::int64_t window, std::int64_t stride) {
  const std::string mode = o.word({"convolutionMode"}, "Truncate");
  if (mode == "Truncate" || mode == "Strict") return first(o, "padding", 0);
  if (mode == "Causal") return 0;
  if (mode != "Same" || stride != 1 || window % 2 == 0)
    o.refuse(fmt::format("convolutionMode {} along a sequence with kernel {} and stride {}", mode, window,
                         stride));
  return (window - 1) / 2;
}

Converted convolutionOverSteps(const Reading& r) {
  const Options& o = r.options;
  requireChannelsFirst(o);
  const std::int64_t kernel = first(o, "kernelSize", 1), stride = first(o, "stride", 1),
                     dilation = first(o, "dilation", 1);
  const Conv1d conv{.outChannels = o.count({"nout", "nOut"}, 0),
                    .kernel = kernel,
                    .stride = stride,
                    .padding = paddingAlong(o, dilation * (kernel - 1) + 1, stride),
                    .dilation = dilation,
                    .causal = o.word({"convolutionMode"}) == "Causal",
                    .activation = activationIn(o),
                    .init = initIn(o),
                    .bias = o.flag("hasBias", true),
                    .name = r.name};
  Converted all{.layers = {conv}, .kind = Kind::Sequence};
  if (conv.bias) all.parameters.push_back({.tensor = r.name + ".bias"});
  all.parameters.push_back({.tensor = r.name + ".weight"});
  return all;
}

Converted poolingOverSteps(const Reading& r) {
  const Options& o = r.options;
  const std::int64_t kernel = first(o, "kernelSize", 2), stride = first(o, "stride", 2);
  const std::int64_t padding = paddingAlong(o, kernel, stride);
  const std::string type = o.word({"poolingType"}, "MAX");
  Converted all{.kind = Kind::Sequence};
  if (type == "MAX") {
    all.layers.emplace_back(
        MaxPool1d{.kernel = kernel, .stride = stride, .padding = padding, .name = r.name});
  } else if (type == "AVG") {
    if (padding != 0 && !o.flag("avgPoolIncludePadInDivisor", false))
      o.refuse("average pooling that leaves its padding out of the mean");
    all.layers.emplace_back(
        AveragePool1d{.kernel = kernel, .stride = stride, .padding = padding, .name = r.name});
  } else {
    o.refuse("pooling " + type);
  }
  return all;
}

/// An index for each example or each step. The weights there are [vocabulary, features] in column order.
Converted embedding(const Reading& r, bool steps) {
  const Options& o = r.options;
  if (o.flag("hasBias", false)) o.refuse("an embedding with a bias");
  if (o.flag("inferInputLength", false) && !steps) o.refuse("inferInputLength");
  const std::int64_t vocabulary = o.count({"nin", "nIn"}, 0), features = o.count({"nout", "nOut"}, 0);
  const std::string table = steps ? r.name : r.name + ".table";
  Converted all{.kind = steps ? Kind::Sequence : Kind::Rows};
  all.layers.emplace_back(
      Embedding{.vocabulary = vocabulary, .features = features, .init = initIn(o), .name = table});
  if (activationIn(o) != Activation::Identity) o.refuse("an embedding with an activation");
  if (!steps) all.layers.emplace_back(Flatten{.name = r.name});
  all.parameters.push_back({.tensor = table + ".weight",
                            .order = {.outer = std::max<std::int64_t>(features, 1),
                                      .inner = std::max<std::int64_t>(vocabulary, 1)}});
  return all;
}

Converted embeddingOfExamples(const Reading& r) {
  return embedding(r, false);
}

Converted embeddingOfSteps(const Reading& r) {
  return embedding(r, true);
}

}  // namespace

std::vector<LayerRule> sequenceRules() {
  std::vector<LayerRule> rules;
  const auto add = [&](std::string_view type, ConvertLayer convert, Kind takes = Kind::Sequence) {
    rules.push_back({type, convert, takes});
  };
  add("LSTM", &lstm);
  add("LastTimeStep", &lastTimeStep);
  add("TimeDistributed", &timeDistributed);
  add("Convolution1DLayer", &convolutionOverSteps);
  add("Convolution1D", &convolutionOverSteps);
  add("Subsampling1DLayer", &poolingOverSteps);
  add("Pooling1D", &poolingOverSteps);
  add("EmbeddingLayer", &embeddingOfExamples, Kind::Rows);
  add("EmbeddingSequenceLayer", &embeddingOfSteps);
  return rules;
}

}  // namespace muster::dl4j::detail
