#include "muster/core/nn/layer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>

#include "muster/core/base/error.h"
#include "muster/core/nn/layers.h"

namespace muster {
namespace {

/// Registers all types of a list.
template <typename... T>
void addAll(Registry<Module>& registry, std::type_identity<std::tuple<T...>>) {
  (registry.add(T::kType, [] { return std::make_unique<detail::ModuleOf<T>>(); }), ...);
}

/// Refuses field names that files use for a layer's settings and inputs, or that two fields have.
class FieldNames final : public Fields {
 public:
  explicit FieldNames(std::string_view type) : type_(type) {}
  void field(std::string_view name, bool&) override { check(name); }
  void field(std::string_view name, std::int64_t&) override { check(name); }
  void field(std::string_view name, std::uint64_t&) override { check(name); }
  void field(std::string_view name, double&) override { check(name); }
  void field(std::string_view name, std::string&) override { check(name); }
  void field(std::string_view name, Shape&) override { check(name); }
  void choice(std::string_view name, std::size_t&, std::span<const std::string_view>) override {
    check(name);
  }
  void object(std::string_view name, std::string&, const std::function<void(Fields&)>&) override {
    check(name);
  }

  /// After all fields.
  void requireName() const {
    require(seen_.contains("name"), "layer {}: its fields() must visit name, by which files call a layer",
            type_);
  }

 private:
  void check(std::string_view name) {
    constexpr std::string_view taken[] = {"type", "learningRate", "frozen", "device", "vertex", "inputs"};
    require(std::ranges::find(taken, name) == std::end(taken),
            "layer {}: the field name {} is reserved by model files", type_, name);
    require(
        seen_.emplace(name).second,
        "layer {}: two of its fields are called {}, and files keep one value of a name; give another name",
        type_, name);
  }

  std::string_view type_;
  std::set<std::string, std::less<>> seen_;
};

}  // namespace

void detail::requireFieldNames(Module& module) {
  FieldNames names(module.type());
  module.fields(names);
  names.requireName();
}

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
    addAll(instance, std::type_identity<detail::LibraryLayers>());
    return true;
  }();
  static_cast<void>(filled);
  return instance;
}

}  // namespace muster
