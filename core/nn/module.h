#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
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
  /// Where given, how each of as many equal parts of the first dimension starts, instead of `init`: a bias
  /// whose gates start differently.
  std::vector<Init> parts = {};
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
  /// Which time steps of sequences [N, T, F] are real: float32 [N, T] of 1 and 0. nullptr: all are.
  const Tensor* sequenceMask = nullptr;
  /// int64 [2] where the network computes: the epoch and the first example's position of `stamp`. nullptr:
  /// the stamp is to be read.
  const Tensor* position = nullptr;
  /// Of the batch's loss: its normaliser. Known in the backward pass only, and there only to programs that
  /// are not recordable; else 0.
  double lossWeight = 0;
};

/// An input of a module, with the batch as first dimension.
struct ModuleInput {
  Shape shape;
  Layout layout = Layout::RowMajor;  ///< as it comes; another one costs a reorder
};

/// What a module is compiled for. Tensors stay where they are for the program's life.
struct ModuleBinding {
  std::string name;                      ///< of the layer, as in "conv1"
  std::vector<ModuleInput> inputs = {};  ///< at least one
  bool training = true;                  ///< false: backward will not be called
  std::vector<Tensor> parameters = {};   ///< in the order of `parameters()`
  std::vector<Tensor> gradients = {};    ///< likewise
  std::vector<Tensor> statistics = {};   ///< in the order of `statistics()`

  // Of a module with one input.
  const Shape& input() const { return inputs.front().shape; }
  Layout offered() const { return inputs.front().layout; }
};

/// Which activations a backward pass reads beside the gradients: the memory of others is used again as soon
/// as the forward pass is done with them.
struct BackwardReads {
  bool input = true, output = true;
};

/// A module compiled for one batch shape and one context: everything is planned and allocated, running it
/// allocates nothing.
class VertexProgram {
 public:
  virtual ~VertexProgram() = default;
  /// In which every input is wanted.
  virtual Layout inputLayout() const { return Layout::RowMajor; }
  virtual Layout outputLayout() const { return Layout::RowMajor; }
  /// The output is the one input's memory in another shape: the program is never run.
  virtual bool aliasesInput() const { return false; }
  /// The derivative by each input is the one by the output, as `backwardAll` leaves it in `gradY`: it is
  /// handed on by whoever runs the program, and `gradX` is empty.
  virtual bool passesGradient() const { return false; }
  virtual BackwardReads backwardReads() const { return {}; }
  /// Whether the backward pass uses `Context::onSideStream`. The network then keeps the inputs and the output
  /// gradient unchanged until its whole backward pass is done.
  virtual bool readsGradientLate() const { return false; }
  /// Whether a step with this program may be recorded once and then run again and again on a GPU without a
  /// call of it (a CUDA graph). True promises that both directions do no more than enqueue the same
  /// operations on the same tensors each time: they wait for nothing, allocate nothing, read no result, and
  /// know what changes from step to step from `position` and the memory of `sequenceMask` alone. A network
  /// with one program that says no runs all its steps call by call.
  virtual bool recordable() const { return false; }
  virtual void forwardAll(std::span<const Tensor> x, Tensor& y, const StepInfo& info) = 0;
  /// Writes (not adds) the parameters' gradients and each of `gradX`, which is undefined where nobody needs
  /// it. `gradY` may be overwritten.
  virtual void backwardAll(std::span<const Tensor> x, const Tensor& y, Tensor& gradY, std::span<Tensor> gradX,
                           const StepInfo& info) = 0;
};

/// The same of a module with one input.
class ModuleProgram : public VertexProgram {
 public:
  virtual void forward(const Tensor& x, Tensor& y, const StepInfo& info) = 0;
  virtual void backward(const Tensor& x, const Tensor& y, Tensor& gradY, Tensor& gradX,
                        const StepInfo& info) = 0;

  void forwardAll(std::span<const Tensor> x, Tensor& y, const StepInfo& info) final {
    forward(x.front(), y, info);
  }
  void backwardAll(std::span<const Tensor> x, const Tensor& y, Tensor& gradY, std::span<Tensor> gradX,
                   const StepInfo& info) final {
    backward(x.front(), y, gradY, gradX.front(), info);
  }
};

/// How a network ends: the loss, and the activation that `output()` applies.
struct LossHead {
  Loss loss = Loss::NegativeLogLikelihood;
  Activation activation = Activation::Softmax;
};

/// A layer's or vertex's description: what it computes, with which parameters. Immutable once it is in a
/// network; compiled into a program for each batch shape. Shapes here are without the batch, one an input.
class Module {
 public:
  virtual ~Module() = default;
  virtual std::string_view type() const = 0;
  /// The name its user gave it, or nothing.
  virtual std::string_view name() const = 0;
  /// Takes one input, as layers do; vertices take several.
  virtual bool takesOneInput() const = 0;
  /// Only takes inputs of rank 1; a network puts a Flatten before it.
  virtual bool wantsFlatInput() const = 0;
  /// Takes indices (int64) instead of numbers; it can only come first.
  virtual bool wantsIndexInput() const = 0;
  /// @throws InvalidArgument naming the module's type and the shapes if they do not fit.
  virtual Shape outputShape(std::span<const Shape> inputs) const = 0;
  virtual std::vector<ParameterSpec> parameters(std::span<const Shape> inputs) const = 0;
  virtual std::vector<ParameterSpec> statistics(std::span<const Shape> inputs) const = 0;
  virtual std::unique_ptr<VertexProgram> compile(const ModuleBinding& binding, Context& context) const = 0;
  virtual std::optional<LossHead> lossHead() const = 0;
  virtual void fields(Fields& fields) = 0;
  /// @throws InvalidArgument naming the option.
  virtual void validate() const = 0;
  virtual std::unique_ptr<Module> clone() const = 0;
};

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
/// `statistics(input)`, `lossHead()`, `static constexpr bool kFlatInput` (it takes rows; see Module) or
/// `bool flatInput()` where that depends on its options, and `static constexpr bool kIndexInput` (it takes
/// indices).
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
  std::unique_ptr<Module> clone() const override { return std::make_unique<ModuleOf>(options_); }

 private:
  static void requireOneInput(std::span<const Shape> inputs) {
    require(inputs.size() == 1, "{}: takes one input, got {}", T::kType, inputs.size());
  }

  T options_;
};
}  // namespace detail

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
