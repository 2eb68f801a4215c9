#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/nn/module.h"

// How a struct of options becomes a Module: it satisfies one of two concepts.

namespace muster {

namespace detail {
template <typename T>
concept ModuleOptions = requires(const T& options, T& mutableOptions, const ModuleBinding& b, Context& c,
                                 Fields& f) {
  { T::kType } -> std::convertible_to<std::string_view>;
  { options.name } -> std::convertible_to<std::string_view>;
  { options.compile(b, c) } -> std::convertible_to<std::unique_ptr<VertexProgram>>;
  mutableOptions.fields(f);
  options.validate();
};
}  // namespace detail

/// An option struct that is a layer: one input, one output. It may also have `parameters(input)`,
/// `statistics(input)`, `lossHead()`, `static constexpr bool kFlatInput` (it takes rows; see Module) or `bool
/// flatInput()` if that depends on its options, `static constexpr bool kIndexInput` (it takes indices), and
/// `static constexpr PaddingUse kPaddingUse`, KeepsZeros without it, or `PaddingUse paddingUse()`.
template <typename T>
concept LayerOptions = detail::ModuleOptions<T> && requires(const T& layer, const Shape& s) {
  { layer.outputShape(s) } -> std::same_as<Shape>;
};

/// An option struct that is a vertex of a graph: any number of inputs, one output, no parameters.
template <typename T>
concept VertexOptions = detail::ModuleOptions<T> && requires(const T& vertex, std::span<const Shape> s) {
  { vertex.outputShape(s) } -> std::same_as<Shape>;
};

namespace detail {
/// Whether a struct is meant as a layer or vertex, though a member may be missing.
template <typename T>
concept MeantAsLayer = !LayerOptions<T> && !VertexOptions<T> &&
                       (
                           requires { T::kType; } || requires { &T::compile; });

/// Fails to compile, with the name of the first member that the struct lacks.
template <typename T>
void requireLayerMembers() {
  static_assert(
      requires {
        { T::kType } -> std::convertible_to<std::string_view>;
      },
      "this layer lacks: static constexpr std::string_view kType");
  static_assert(
      requires(const T& t) {
        { t.name } -> std::convertible_to<std::string_view>;
      },
      "this layer lacks: std::string name");
  static_assert(
      requires(const T& t, const Shape& s) {
        { t.outputShape(s) } -> std::same_as<Shape>;
      } ||
          requires(const T& t, std::span<const Shape> s) {
            { t.outputShape(s) } -> std::same_as<Shape>;
          },
      "this layer lacks: Shape outputShape(const Shape& input) const");
  static_assert(
      requires(const T& t, const ModuleBinding& b, Context& c) {
        { t.compile(b, c) } -> std::convertible_to<std::unique_ptr<VertexProgram>>;
      },
      "this layer lacks: std::unique_ptr<ModuleProgram> compile(const ModuleBinding&, Context&) const");
  static_assert(
      requires(T & t, Fields & f) { t.fields(f); }, "this layer lacks: void fields(Fields&)");
  static_assert(
      requires(const T& t) { t.validate(); }, "this layer lacks: void validate() const");
}

template <typename T>
requires LayerOptions<T> || VertexOptions<T>
class ModuleOf final : public Module {
 public:
  explicit ModuleOf(T options = {}) : options_(std::move(options)) {}
  std::string_view type() const override { return T::kType; }
  std::string_view name() const override { return options_.name; }
  bool takesOneInput() const override { return LayerOptions<T>; }
  bool wantsFlatInput() const override {
    if constexpr (requires { T::kFlatInput; }) return T::kFlatInput;
    if constexpr (requires { options_.flatInput(); }) return options_.flatInput();
    return false;
  }
  bool wantsIndexInput() const override {
    if constexpr (requires { T::kIndexInput; }) return T::kIndexInput;
    return false;
  }
  PaddingUse paddingUse() const override {
    if constexpr (requires { T::kPaddingUse; }) return T::kPaddingUse;
    if constexpr (requires { options_.paddingUse(); }) return options_.paddingUse();
    return PaddingUse::KeepsZeros;
  }
  Shape outputShape(std::span<const Shape> inputs) const override {
    if constexpr (LayerOptions<T>) {
      requireOneInput(inputs);
      return options_.outputShape(inputs.front());
    } else {
      return options_.outputShape(inputs);
    }
  }
  std::vector<ParameterSpec> parameters(std::span<const Shape> inputs) const override {
    if constexpr (requires { options_.parameters(inputs.front()); })
      return options_.parameters(inputs.front());
    return {};
  }
  std::vector<ParameterSpec> statistics(std::span<const Shape> inputs) const override {
    if constexpr (requires { options_.statistics(inputs.front()); })
      return options_.statistics(inputs.front());
    return {};
  }
  std::unique_ptr<VertexProgram> compile(const ModuleBinding& binding, Context& context) const override {
    return options_.compile(binding, context);
  }
  std::optional<LossHead> lossHead() const override {
    if constexpr (requires { options_.lossHead(); }) return options_.lossHead();
    return std::nullopt;
  }
  void fields(Fields& fields) override { options_.fields(fields); }
  void validate() const override { options_.validate(); }
  const T& options() const { return options_; }
  std::unique_ptr<Module> clone() const override { return std::make_unique<ModuleOf>(options_); }

 private:
  static void requireOneInput(std::span<const Shape> inputs) {
    require(inputs.size() == 1, "{}: takes one input, got {}", T::kType, inputs.size());
  }

  T options_;
};
}  // namespace detail

}  // namespace muster
