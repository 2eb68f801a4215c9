#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "muster/core/base/registry.h"
#include "muster/core/device/device.h"
#include "muster/core/nn/layer_options.h"

namespace muster {

namespace detail {
/// @throws InvalidArgument for a field whose name has another meaning in files or is taken, or without `name`.
void requireFieldNames(Module& module);
}  // namespace detail

/// Settings that every layer of a network has, whatever its type.
struct LayerSettings {
  double learningRate = 1;  ///< factor of the network's learning rate; at least 0
  /// The parameters are never updated and statistics do not change: the layer runs as in evaluation.
  bool frozen = false;
  /// The layer's device; empty: the network's.
  std::optional<Device> device = {};
};

/// Any layer or vertex, for example `Conv2d{.outChannels = 20, .kernel = {5, 5}}`. A value.
class Layer {
 public:
  template <typename T>
  requires LayerOptions<T> || VertexOptions<T> Layer(
      const T& options)  // NOLINT(google-explicit-constructor): a layer's options are a layer
      : module_(std::make_shared<const detail::ModuleOf<T>>(options)) {}
  /// Names the member that a struct lacks.
  template <detail::MeantAsLayer T>
  Layer(const T&) {  // NOLINT(google-explicit-constructor): as above
    detail::requireLayerMembers<T>();
  }
  explicit Layer(std::shared_ptr<const Module> module, LayerSettings settings = {})
      : module_(std::move(module)), settings_(settings) {}

  const Module& module() const { return *module_; }
  const LayerSettings& settings() const { return settings_; }

  /// The same layer, frozen: `Layer(Dense{.units = 10}).frozen()`.
  Layer frozen() const;
  /// The same layer with the learning rate times `scale`. @throws InvalidArgument for a scale that is
  /// negative or not finite.
  Layer learningRate(double scale) const;

  /// The same layer on another device; see `OnDevice`.
  Layer on(Device device) const;

  /// The layers that files can name. Register your own layer to load it from files.
  static Registry<Module>& registry();
  /// A second call does nothing. @throws InvalidArgument if another layer has this `kType`; if `fields` does
  /// not visit `name`, or visits two fields of one name, as of OutputOf and its loss; or for a field called
  /// type, learningRate, frozen, device, vertex or inputs, which have another meaning in files.
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

/// A layer on another device than its network: `OnDevice(Dense{.units = 4096}, Device::cuda(1))`. Activations
/// are copied there in the forward pass, gradients are copied back in the backward pass. The parameters stay
/// in the network's blocks, where they are updated and merged, and are copied in every step. Use it for
/// layers whose activations do not fit on the network's device; each step waits for the copies. A device that
/// is not available is refused (DeviceUnavailable) with the first batch.
inline Layer OnDevice(const Layer& layer, Device device) {
  return layer.on(device);
}

}  // namespace muster
