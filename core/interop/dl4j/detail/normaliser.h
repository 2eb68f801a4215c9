#pragma once

#include <string_view>
#include <vector>

#include "muster/core/interop/dl4j/detail/options.h"
#include "muster/core/nn/layers/normalise.h"

namespace muster::dl4j::detail {

/// A normaliser of the features in a file: y = (x - shift) scale, as Normalise computes it.
struct Normaliser {
  NormaliseMethod method = NormaliseMethod::Standardise;
  /// One for each feature; a single one is for all of them.
  std::vector<float> shift, scale;
};

/// Reads normalizer.bin: NormalizerStandardize, NormalizerMinMaxScaler or ImagePreProcessingScaler. Others,
/// and those that also scale the labels, become problems.
/// @throws InvalidArgument for bytes that are none.
Normaliser readNormaliser(std::string_view bytes, Problems& problems);

/// Writes it as NormalizerStandardize or NormalizerMinMaxScaler.
std::string writeNormaliser(const Normaliser& normaliser);

}  // namespace muster::dl4j::detail
