#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "muster/core/base/registry.h"
#include "muster/core/device/device.h"
#include "muster/core/nn/layer_options.h"

namespace muster {

namespace detail {
/// @throws InvalidArgument for a field whose name files use for something else beside a layer's own.
void requireFieldNames(Module& module);
}  // namespace detail

/// What a network does with a layer, whatever the layer is.
struct LayerSettings {
  double learningRate = 1;  ///< the network's times this; at least 0
  /// Its parameters are never updated, and its statistics stay as they are: it runs as in evaluation.
  bool frozen = false;
  /// Where it computes; nothing: where the network does.
  std::optional<Device> device = {};
};

/// Any layer or vertex: `Conv2d{.outChannels = 20, .kernel = {5, 5}}`. A value.
class Layer {
 public:
  template <typename T>
  requires LayerOptions<T> || VertexOptions<T> Layer(
      const T& options)  // NOLINT(google-explicit-constructor): a layer's options are a layer
      : module_(std::make_shared<const detail::ModuleOf<T>>(options)) {}
  explicit Layer(std::shared_ptr<const Module> module, LayerSettings settings = {})
      : module_(std::move(module)), settings_(settings) {}

  const Module& module() const { return *module_; }
  const LayerSettings& settings() const { return settings_; }

  /// The same layer, frozen: `Layer(Dense{.units = 10}).frozen()`.
  Layer frozen() const;
  /// The same layer with the learning rate times `scale`. @throws InvalidArgument for a scale that is
  /// negative or not finite.
  Layer learningRate(double scale) const;

  /// The same layer on a device of its own; see `OnDevice`.
  Layer on(Device device) const;

  /// The layers that files can name. A layer of one's own that is saved and loaded adds itself here.
  static Registry<Module>& registry();
  /// A second time changes nothing. @throws InvalidArgument where another layer has this `kType`, and for a
  /// field called type, learningRate, frozen, device, vertex or inputs: in files these stand beside a layer's
  /// own.
  template <typename T>
  requires LayerOptions<T> || VertexOptions<T>
  static void registerType() {
    detail::ModuleOf<T> module;
    detail::requireFieldNames(module);
    registry().add(T::kType, [] { return std::make_unique<detail::ModuleOf<T>>(); });
  }

 private:
  std::shared_ptr<const Module> module_;
  LayerSettings settings_;
};

/// A layer on a device of its own, in a network on another: `OnDevice(Dense{.units = 4096},
/// Device::cuda(1))`. Activations move there in the forward pass, gradients come back in the backward pass.
/// The parameters stay in the network's blocks, on the network's device, where they are updated and merged,
/// and are fetched in every step. It is for layers whose activations do not fit beside the others; the step
/// waits for the copies. A device that this build or machine does not have is refused (DeviceUnavailable)
/// with the first batch.
inline Layer OnDevice(const Layer& layer, Device device) {
  return layer.on(device);
}

}  // namespace muster
