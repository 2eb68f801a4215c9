#include "muster/core/nn/layers.h"

namespace muster {
namespace {

template <LayerOptions... T>
void addAll(Registry<Module>& registry) {
  (registry.add(T::kType, [] { return std::make_unique<detail::ModuleOf<T>>(); }), ...);
}

}  // namespace

Registry<Module>& Layer::registry() {
  static Registry<Module> instance("layer");
  static const bool filled = [] {
    addAll<Conv2d, MaxPool2d, AveragePool2d, GlobalPool2d, Dense, Output, ActivationLayer, Dropout, Flatten>(
        instance);
    return true;
  }();
  static_cast<void>(filled);
  return instance;
}

}  // namespace muster
