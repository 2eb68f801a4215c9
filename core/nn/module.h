#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/base/fields.h"
#include "muster/core/nn/initializer.h"
#include "muster/core/nn/module_program.h"
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

}  // namespace muster
