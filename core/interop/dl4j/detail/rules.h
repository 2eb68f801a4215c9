#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/interop/dl4j/detail/description.h"
#include "muster/core/interop/dl4j/detail/parameters.h"
#include "muster/core/nn/layer.h"
#include "muster/core/nn/layers.h"

namespace muster::dl4j::detail {

/// What the examples of a value are: [F], [C, H, W], or [T, F] here and [F, T] there.
enum class Kind { Rows, Image, Sequence };

/// How a layer changes the height or the width of images: out = (in + padding - window) / stride + 1, rounded
/// down, or with `up` up * (in - 1) + window - padding. With `same`, out = in / stride, rounded up.
struct Resize {
  std::int64_t window = 1, stride = 1, padding = 0, up = 0;
  bool same = false;

  /// The size of the output; 0 if there is none.
  std::int64_t forward(std::int64_t in) const;
  /// The smallest and the largest input whose output has this size.
  std::array<std::int64_t, 2> backward(std::int64_t out) const;
  /// The one of these that leaves no remainder.
  std::int64_t exact(std::int64_t out) const { return same ? backward(out)[1] : backward(out)[0]; }
};

/// A layer to be converted.
struct Reading {
  const Options& options;
  std::string name;
  Kind kind = Kind::Rows;              ///< of its input
  std::array<std::int64_t, 2> size{};  ///< of input images; 0: not known
};

/// What becomes of a layer.
struct Converted {
  std::vector<Layer> layers = {};          ///< one after another; the last has the layer's name
  std::vector<Parameter> parameters = {};  ///< in Deeplearning4j's order
  Kind kind = Kind::Rows;                  ///< of its output
};

using ConvertLayer = Converted (*)(const Reading&);
using ResizeImage = std::array<Resize, 2> (*)(const Options&);

/// How layers of one type are converted.
struct LayerRule {
  std::string_view type;
  ConvertLayer convert;
  std::optional<Kind> takes = {};  ///< the input's kind, if it is always the same
  ResizeImage resize = nullptr;    ///< for layers of images that change their size
};

/// nullptr if muster has no such layer.
const LayerRule* ruleFor(std::string_view type);
std::vector<LayerRule> imageRules();
std::vector<LayerRule> sequenceRules();
std::vector<LayerRule> otherRules();

/// A vertex of a graph that is no layer. Empty if muster has none of this type.
std::optional<Layer> vertexOf(const Options& vertex, Kind kind, const std::string& name);

Activation activationIn(const Options& layer);
Init initIn(const Options& layer);
/// Refuses an image or sequence whose channels come last.
void requireChannelsFirst(const Options& options);
/// The layer that an `idropout` is, or nothing.
std::optional<Layer> dropoutIn(const Options& layer, const std::string& name);

}  // namespace muster::dl4j::detail
