#include "muster/core/nn/models/gpt.h"

#include <string>

#include "muster/core/base/error.h"

namespace muster {
namespace {

/// Adds `layer`, which reads `x` normalised, dropout, and the sum of both. @return the sum's name.
std::string addResidual(ComputationGraphConfiguration& graph, const std::string& name, const std::string& x,
                        const std::vector<Layer>& layers, double dropout) {
  auto at = graph.add(name + ".norm", LayerNorm{}, {x});
  for (std::size_t i = 0; i < layers.size(); ++i)
    at = graph.add(fmt::format("{}.{}", name, i + 1), layers[i], {at});
  if (dropout != 0) at = graph.add(name + ".dropout", Dropout{.rate = dropout}, {at});
  return graph.add(name + ".sum", Combine{.combination = Combination::Add}, {x, at});
}

}  // namespace

ComputationGraphConfiguration gpt(std::int64_t vocabulary, const GptOptions& options) {
  const auto& o = options;
  require(vocabulary >= 2, "gpt: the vocabulary must have at least 2 symbols, got {}", vocabulary);
  require(o.layers >= 1, "gpt: layers must be at least 1, got {}", o.layers);
  require(o.heads >= 1 && o.features >= 1 && o.features % o.heads == 0,
          "gpt: heads must divide the features, got {} and {}", o.heads, o.features);
  const Init init = Init::normal(0.02);
  ComputationGraphConfiguration graph;
  graph.inputs = {{.name = "text"}};
  auto at = graph.add("embedding", Embedding{.vocabulary = vocabulary, .features = o.features, .init = init},
                      {"text"});
  for (std::int64_t i = 1; i <= o.layers; ++i) {
    at = addResidual(graph, fmt::format("attention{}", i), at,
                     {SelfAttention{.heads = o.heads, .causal = true, .init = init}}, o.dropout);
    at = addResidual(
        graph, fmt::format("dense{}", i), at,
        {Dense{.units = 4 * o.features, .activation = Activation::GELU, .init = init, .perStep = true},
         Dense{.units = o.features, .init = init, .perStep = true}},
        o.dropout);
  }
  at = graph.add("norm", LayerNorm{}, {at});
  graph.addOutput(graph.add("output", Output{.classes = vocabulary, .init = init, .perStep = true}, {at}));
  return graph;
}

}  // namespace muster
