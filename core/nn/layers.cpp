#include "muster/core/nn/layers.h"

#include <cmath>

#include "muster/core/base/error.h"

namespace muster {
namespace {

template <typename... T>
void addAll(Registry<Module>& registry) {
  (registry.add(T::kType, [] { return std::make_unique<detail::ModuleOf<T>>(); }), ...);
}

}  // namespace

Layer Layer::frozen() const {
  LayerSettings settings = settings_;
  settings.frozen = true;
  return Layer(module_, settings);
}

Layer Layer::learningRate(double scale) const {
  require(std::isfinite(scale) && scale >= 0,
          "layer {}: the learning rate's scale must be finite and not negative, got {}", module_->type(),
          scale);
  LayerSettings settings = settings_;
  settings.learningRate = scale;
  return Layer(module_, settings);
}

Layer Layer::on(Device device) const {
  LayerSettings settings = settings_;
  settings.device = device;
  return Layer(module_, settings);
}

Registry<Module>& Layer::registry() {
  static Registry<Module> instance("layer");
  static const bool filled = [] {
    addAll<BatchNorm, Conv1d, Conv2d, ConvTranspose2d, Upsample2d, ZeroPad2d, MaxPool2d, AveragePool2d,
           GlobalPool2d, Dense, Output, ActivationLayer, Dropout, Flatten, LayerNorm, Combine, Merge, Subset,
           Reshape, Scale, Embedding, LSTM, GRU, SelfAttention, LastStep, MeanOverTime>(instance);
    return true;
  }();
  static_cast<void>(filled);
  return instance;
}

}  // namespace muster
