#include "muster/core/interop/dl4j/detail/rules.h"

#include <algorithm>
#include <cmath>

#include "muster/core/base/error.h"

namespace muster::dl4j::detail {

std::int64_t Resize::forward(std::int64_t in) const {
  if (same) return (in + stride - 1) / stride;
  if (up > 0) return up * (in - 1) + window - padding;
  return in + padding < window ? 0 : (in + padding - window) / stride + 1;
}

std::array<std::int64_t, 2> Resize::backward(std::int64_t out) const {
  if (same) return {(out - 1) * stride + 1, out * stride};
  if (up > 0) {
    const std::int64_t in = (out - window + padding) / up + 1;
    return {in, in};
  }
  const std::int64_t least = (out - 1) * stride + window - padding;
  return {least, least + stride - 1};
}

const LayerRule* ruleFor(std::string_view type) {
  static const std::vector<LayerRule> rules = [] {
    std::vector<LayerRule> all = imageRules();
    for (const auto& more : {sequenceRules(), otherRules()}) all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  const auto found = std::ranges::find(rules, type, &LayerRule::type);
  return found == rules.end() ? nullptr : &*found;
}

Activation activationIn(const Options& layer) {
  const Options function = layer.object({"activationFn"});
  const std::string type = function.type();
  if (type.empty() || type == "ActivationIdentity") return Activation::Identity;
  if (type == "ActivationTanH") return Activation::Tanh;
  if (type == "ActivationSigmoid") return Activation::Sigmoid;
  if (type == "ActivationSoftmax") return Activation::Softmax;
  const auto slopeOf = [&](double slope) {
    if (slope == 0) return Activation::ReLU;
    if (static_cast<float>(slope) != kLeakySlope)
      layer.refuse(fmt::format("{} with a slope of {}; there is only {}", type, slope, kLeakySlope));
    return Activation::LeakyReLU;
  };
  if (type == "ActivationLReLU") return slopeOf(function.number({"alpha"}, kLeakySlope));
  if (type == "ActivationReLU") {
    if (function.find({"max"})) layer.refuse("ActivationReLU with a maximum");
    if (function.number({"threshold"}, 0) != 0) layer.refuse("ActivationReLU with a threshold");
    return slopeOf(function.number({"negativeSlope"}, 0));
  }
  layer.refuse("activation " + type);
  return Activation::Identity;
}

Init initIn(const Options& layer) {
  const std::string type = layer.object({"weightInitFn"}).type();
  return type == "WeightInitRelu" ? Init::he() : type == "WeightInitZero" ? Init::zero() : Init::xavier();
}

void requireChannelsFirst(const Options& options) {
  for (const auto* const name : {"cnn2dDataFormat", "cnn2DFormat", "dataFormat", "rnnDataFormat", "format"})
    if (const auto format = options.word({name}); format == "NHWC" || format == "NWC")
      options.refuse(fmt::format("{} {}: its channels come last", name, format));
}

std::optional<Layer> dropoutIn(const Options& layer, const std::string& name) {
  if (!layer.find({"idropout"})) return std::nullopt;
  const Options dropout = layer.object({"idropout"});
  if (dropout.type() != "Dropout" || dropout.find({"pSchedule"})) {
    layer.refuse(dropout.type() == "Dropout" ? "dropout with a schedule" : "dropout " + dropout.type());
    return std::nullopt;
  }
  const double kept = dropout.number({"p"}, 1);
  if (kept == 1) return std::nullopt;
  if (!(kept > 0 && kept < 1)) layer.refuse(fmt::format("dropout that keeps a share of {}", kept));
  return Dropout{.rate = kept > 0 && kept < 1 ? 1 - kept : 0.5, .name = name};
}

}  // namespace muster::dl4j::detail
