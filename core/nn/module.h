#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/base/fields.h"
#include "muster/core/base/registry.h"
#include "muster/core/data/batch.h"
#include "muster/core/nn/initializer.h"
#include "muster/core/ops/activation.h"
#include "muster/core/ops/loss.h"
#include "muster/core/optim/state_block.h"

namespace muster {

/// A parameter or statistic that a module owns.
struct ParameterSpec {
  std::string name;  ///< within the module: "weight", "bias"
  Shape shape;
  Init init = Init::zero();
  std::int64_t fanIn = 1, fanOut = 1;
  // Of parameters; see Segment.
  bool regularised = true;       ///< takes L1, L2 and weight decay
  double learningRateScale = 1;  ///< at least 0
  bool frozen = false;           ///< never updated
  // Of statistics.
  /// What a merge does with it. Moments come in pairs: a mean, and right behind it (of those merged so) the
  /// variance, of one shape.
  MergeRule merge = MergeRule::Average;
};

/// What a compiled module reads in a step beside its tensors.
struct StepInfo {
  BatchStamp stamp;
  std::uint64_t seed = 0;
  bool training = true;  ///< dropout acts, statistics move; a backward pass may follow either way
};

/// What a module is compiled for. Tensors stay where they are for the program's life.
struct ModuleBinding {
  std::string name;                   ///< of the layer, as in "conv1"
  Shape input;                        ///< with the batch as first dimension
  Layout offered = Layout::RowMajor;  ///< of the input as it comes; another one costs a reorder
  bool training = true;               ///< false: backward will not be called
  std::vector<Tensor> parameters;     ///< in the order of `parameters()`
  std::vector<Tensor> gradients;      ///< likewise
  std::vector<Tensor> statistics;     ///< in the order of `statistics()`
};

/// A module compiled for one batch shape and one context: everything is planned and allocated, running it
/// allocates nothing.
class ModuleProgram {
 public:
  virtual ~ModuleProgram() = default;
  virtual Layout inputLayout() const { return Layout::RowMajor; }
  virtual Layout outputLayout() const { return Layout::RowMajor; }
  /// The output is the input's memory in another shape: `forward` and `backward` are never called.
  virtual bool aliasesInput() const { return false; }
  virtual void forward(const Tensor& x, Tensor& y, const StepInfo& info) = 0;
  /// Writes (not adds) the parameters' gradients and `gradX`, which is undefined where nobody needs it.
  /// `gradY` may be overwritten.
  virtual void backward(const Tensor& x, const Tensor& y, Tensor& gradY, Tensor& gradX,
                        const StepInfo& info) = 0;
};

/// How a network ends: the loss, and the activation that `output()` applies.
struct LossHead {
  Loss loss = Loss::NegativeLogLikelihood;
  Activation activation = Activation::Softmax;
};

/// A layer's description: what it computes, with which parameters. Immutable once it is in a network;
/// compiled into a ModuleProgram for each batch shape. Shapes here are without the batch.
class Module {
 public:
  virtual ~Module() = default;
  virtual std::string_view type() const = 0;
  /// The name its user gave it, or nothing.
  virtual std::string_view name() const = 0;
  /// Only takes inputs of rank 1; a chain puts a Flatten before it.
  virtual bool wantsFlatInput() const = 0;
  /// @throws InvalidArgument naming the layer's type and the shape if it does not fit.
  virtual Shape outputShape(const Shape& input) const = 0;
  virtual std::vector<ParameterSpec> parameters(const Shape& input) const = 0;
  virtual std::vector<ParameterSpec> statistics(const Shape& input) const = 0;
  virtual std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const = 0;
  virtual std::optional<LossHead> lossHead() const = 0;
  virtual void fields(Fields& fields) = 0;
  /// @throws InvalidArgument naming the option.
  virtual void validate() const = 0;
  virtual std::unique_ptr<Module> clone() const = 0;
};

/// An option struct that is a layer. It may also have `parameters(input)`, `statistics(input)`, `lossHead()`
/// and `static constexpr bool kFlatInput`, or `bool flatInput()` where that depends on its options.
template <typename T>
concept LayerOptions = requires(const T& layer, T& mutableLayer, const Shape& s, const ModuleBinding& b,
                                Context& c, Fields& f) {
  { T::kType } -> std::convertible_to<std::string_view>;
  { layer.name } -> std::convertible_to<std::string_view>;
  { layer.outputShape(s) } -> std::same_as<Shape>;
  { layer.compile(b, c) } -> std::same_as<std::unique_ptr<ModuleProgram>>;
  mutableLayer.fields(f);
  layer.validate();
};

namespace detail {
template <LayerOptions T>
class ModuleOf final : public Module {
 public:
  explicit ModuleOf(T options = {}) : options_(std::move(options)) {}
  std::string_view type() const override { return T::kType; }
  std::string_view name() const override { return options_.name; }
  bool wantsFlatInput() const override {
    if constexpr (requires { T::kFlatInput; }) return T::kFlatInput;
    if constexpr (requires { options_.flatInput(); }) return options_.flatInput();
    return false;
  }
  Shape outputShape(const Shape& input) const override { return options_.outputShape(input); }
  std::vector<ParameterSpec> parameters(const Shape& input) const override {
    if constexpr (requires { options_.parameters(input); }) return options_.parameters(input);
    return {};
  }
  std::vector<ParameterSpec> statistics(const Shape& input) const override {
    if constexpr (requires { options_.statistics(input); }) return options_.statistics(input);
    return {};
  }
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const override {
    return options_.compile(binding, context);
  }
  std::optional<LossHead> lossHead() const override {
    if constexpr (requires { options_.lossHead(); }) return options_.lossHead();
    return std::nullopt;
  }
  void fields(Fields& fields) override { options_.fields(fields); }
  void validate() const override { options_.validate(); }
  std::unique_ptr<Module> clone() const override { return std::make_unique<ModuleOf>(options_); }

 private:
  T options_;
};
}  // namespace detail

/// Any layer: `Conv2d{.outChannels = 20, .kernel = {5, 5}}`. A value.
class Layer {
 public:
  template <LayerOptions T>
  Layer(const T& options)  // NOLINT(google-explicit-constructor): a layer's options are a layer
      : module_(std::make_shared<const detail::ModuleOf<T>>(options)) {}
  explicit Layer(std::shared_ptr<const Module> module) : module_(std::move(module)) {}

  const Module& module() const { return *module_; }

  /// The layers that files can name. A layer of one's own that is saved and loaded adds itself here.
  static Registry<Module>& registry();
  template <LayerOptions T>
  static void registerType() {
    registry().add(T::kType, [] { return std::make_unique<detail::ModuleOf<T>>(); });
  }

 private:
  std::shared_ptr<const Module> module_;
};

}  // namespace muster
