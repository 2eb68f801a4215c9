#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/core/nn/module.h"

namespace muster {

/// What a Normalise makes of each feature.
enum class NormaliseMethod {
  Standardise,  ///< mean 0, standard deviation 1 (of the population); features of 0 and 1 alone: times 2
  MinMax,       ///< the smallest value 0, the largest 1
};

template <>
struct EnumNames<NormaliseMethod> {
  static constexpr std::array<std::pair<NormaliseMethod, std::string_view>, 2> kNames{
      {{NormaliseMethod::Standardise, "standardise"}, {NormaliseMethod::MinMax, "minmax"}}};
};

/// Scales the network's inputs: y = (x - shift) scale, for each feature of [F] and of each step of [T, F],
/// and for each channel of [C, H, W]. The first layer of a network, or in a graph any that reads one of its
/// inputs. Bytes are scaled as value/255.
///
/// Shift and scale (statistics [F] or [C]) are fitted to the training examples in one pass before the first
/// step: by `fit`, of the model or of a ParallelWrapper, if they never were, or by
/// `Network::fitNormalisation`. After that they are constant: neither trained nor decayed, equal in all
/// replicas, and part of the model file. All examples count once, whatever their weight in the loss; padded
/// steps do not count. A feature that has one value only gets scale 1. Until it is fitted the network
/// computes nothing (InvalidArgument).
struct Normalise {
  static constexpr std::string_view kType = "normalise";
  static constexpr PaddingUse kPaddingUse = PaddingUse::PerStep;

  NormaliseMethod method = NormaliseMethod::Standardise;
  std::string name = {};

  Shape outputShape(const Shape& input) const;
  std::vector<ParameterSpec> statistics(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const {}
};

}  // namespace muster
