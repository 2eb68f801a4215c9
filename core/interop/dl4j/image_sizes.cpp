#include <algorithm>

#include "muster/core/interop/dl4j/detail/conversion.h"
#include "muster/core/interop/dl4j/detail/rules.h"

namespace muster::dl4j::detail {
namespace {

using Size = std::array<std::int64_t, 2>;

constexpr std::int64_t kMostSize = std::int64_t{1} << 31;  // larger ones count as not known

Size bounded(Size size) {
  return size[0] > 0 && size[1] > 0 && std::max(size[0], size[1]) <= kMostSize ? size : Size{};
}

std::array<Resize, 2> resizeOf(const Vertex& vertex) {
  const LayerRule* rule = vertex.isLayer ? ruleFor(vertex.type()) : nullptr;
  return rule != nullptr && rule->resize != nullptr ? rule->resize(vertex.options) : std::array<Resize, 2>();
}

/// Whether a vertex gives images of the size of its input's, or of a size that only depends on it.
bool keepsImages(const Vertex& vertex) {
  const std::string type = vertex.type();
  return type != "DenseLayer" && type != "OutputLayer" && type != "GlobalPoolingLayer";
}

Size sizeIn(const Options& preprocessor) {
  return {preprocessor.count({"inputHeight"}, 0), preprocessor.count({"inputWidth"}, 0)};
}

}  // namespace

ImageSizes::ImageSizes(const Description& description, const std::vector<Shape>& shapes) {
  if (shapes.empty()) setBackward(description);
  for (std::size_t i = 0; i < std::min(shapes.size(), description.inputs.size()); ++i)
    if (shapes[i].rank() == 3) sizes_[description.inputs[i]] = bounded({shapes[i][1], shapes[i][2]});
  setForward(description);
}

std::array<std::int64_t, 2> ImageSizes::of(const std::string& value) const {
  const auto found = sizes_.find(value);
  return found == sizes_.end() ? Size{} : found->second;
}

/// From the sizes that preprocessors state back to the inputs.
void ImageSizes::setBackward(const Description& description) {
  for (std::size_t i = description.vertices.size(); i-- > 0;) {
    const Vertex& vertex = description.vertices[i];
    Size in{};
    if (vertex.preprocessorType() == "CnnToFeedForwardPreProcessor") {
      in = sizeIn(*vertex.preprocessor);
    } else if (!vertex.preprocessor && keepsImages(vertex) && sizes_.contains(vertex.name)) {
      const auto resize = resizeOf(vertex);
      const Size out = sizes_.at(vertex.name);
      for (std::size_t axis = 0; axis < 2; ++axis)
        if (out[axis] > 0) in[axis] = std::max<std::int64_t>(resize[axis].exact(out[axis]), 0);
    }
    if (bounded(in) != Size{})
      for (const auto& input : vertex.inputs) sizes_.emplace(input, in);
  }
  std::erase_if(sizes_, [&](const auto& entry) { return description.indexOf(entry.first).has_value(); });
}

void ImageSizes::setForward(const Description& description) {
  for (const Vertex& vertex : description.vertices) {
    if (vertex.inputs.empty()) continue;
    Size in = of(vertex.inputs.front());
    if (vertex.preprocessorType() == "FeedForwardToCnnPreProcessor") in = sizeIn(*vertex.preprocessor);
    if (in[0] == 0 || !keepsImages(vertex)) continue;
    const auto resize = resizeOf(vertex);
    sizes_[vertex.name] = bounded({resize[0].forward(in[0]), resize[1].forward(in[1])});
  }
}

}  // namespace muster::dl4j::detail
