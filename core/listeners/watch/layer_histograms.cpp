#include "muster/core/listeners/watch/layer_histograms.h"

#include <algorithm>
#include <cstring>

namespace muster {
namespace {

const StateBlock* parametersOf(Model& model) {
  for (const auto& block : model.blocks())
    if (block.kind == BlockKind::Parameters && block.values.defined() && block.values.elements() > 0)
      return &block;
  return nullptr;
}

template <typename T>
std::span<const T> numbers(const Tensor& all, const Segment& segment) {
  return {all.data<T>() + segment.offset, static_cast<std::size_t>(segment.shape.elements())};
}

template <typename T>
void fill(LayerHistogram& layer, const Tensor& now, const Tensor& before, const Segment& segment) {
  layer.parameters = histogramOf(numbers<T>(now, segment));
  layer.update = histogramOf(numbers<T>(now, segment), numbers<T>(before, segment));
}

}  // namespace

double LayerHistogram::ratio() const {
  const double norm = parameters.norm();
  return norm > 0 ? update.norm() / norm : 0;
}

void LayerHistograms::before(Model& model) {
  begun_ = false;
  const StateBlock* const block = parametersOf(model);
  if (block == nullptr) return;
  const Tensor& values = block->values;
  const bool fits =
      before_.defined() && before_.dtype() == values.dtype() && before_.bytes() == values.bytes();
  if (!values.device().isCpu() || !fits) {
    before_ = copyTo(values, Device::cpu());
  } else {
    std::memcpy(before_.raw(), values.raw(), static_cast<std::size_t>(values.bytes()));
  }
  begun_ = true;
}

std::span<const LayerHistogram> LayerHistograms::after(Model& model) {
  const StateBlock* const block = parametersOf(model);
  if (!begun_ || block == nullptr || block->values.bytes() != before_.bytes()) return {};
  begun_ = false;
  const Tensor now = block->values.device().isCpu() ? block->values : copyTo(block->values, Device::cpu());
  const auto& segments = block->segments->segments;
  layers_.resize(segments.size());
  for (std::size_t i = 0; i < segments.size(); ++i) {
    LayerHistogram& layer = layers_[i];
    if (layer.name != segments[i].name) layer.name = segments[i].name;
    if (now.dtype() == DType::Float64)
      fill<double>(layer, now, before_, segments[i]);
    else
      fill<float>(layer, now, before_, segments[i]);
  }
  return layers_;
}

}  // namespace muster
