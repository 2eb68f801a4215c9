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
  /// If given, the initialisers of equal parts of the first dimension, instead of `init`: for a bias whose
  /// gates start differently.
  std::vector<Init> parts = {};
  // Options of parameters; see Segment.
  bool regularised = true;       ///< takes L1, L2 and weight decay
  double learningRateScale = 1;  ///< at least 0
  bool frozen = false;           ///< never updated
  // Options of statistics.
  /// How a merge treats it. Moments come in pairs of one shape: a mean, and directly after it (among the
  /// Moments) the variance.
  MergeRule merge = MergeRule::Average;
};

/// What a loss is averaged over.
enum class LossMean {
  Rows,      ///< rows, weighted by the mask: each unmasked step of a sequence counts the same
  Examples,  ///< all examples, after the losses of an example's steps are added: long sequences count more
};

template <>
struct EnumNames<LossMean> {
  static constexpr std::array<std::pair<LossMean, std::string_view>, 2> kNames{{
      {LossMean::Rows, "rows"},
      {LossMean::Examples, "examples"},
  }};
};

/// What a module makes of padding, the steps of [N, T, ...] that a batch's mask "features" marks.
enum class PaddingUse {
  KeepsZeros,  ///< each step by itself, and zeros stay zeros, as in an activation
  PerStep,     ///< each step by itself
  ReadsMask,   ///< what padding holds changes no other step's output
  MixesLater,  ///< padding changes the outputs of later steps
  Mixes,       ///< padding changes the outputs of other steps
};

/// The end of a network: the loss, and the activation of its predictions. If the loss takes logits
/// (`takesLogits`), `output()` applies that activation; else the layer has applied it.
struct LossHead {
  Loss loss = Loss::NegativeLogLikelihood;
  Activation activation = Activation::Softmax;
  LossMean mean = LossMean::Rows;
  double weight = 1;                     ///< factor of the loss
  double delta = 1, labelSmoothing = 0;  ///< see LossRule
  /// If set, the loss instead of `loss`, which then says what kind of labels it takes.
  std::shared_ptr<const OwnLoss> own = {};

  LossRule rule() const { return {loss, delta, labelSmoothing}; }
};

/// The description of a layer or vertex: its computation and parameters. Immutable in a network; compiled
/// into a program for each batch shape. Shapes are without the batch, one for each input.
class Module {
 public:
  virtual ~Module() = default;
  virtual std::string_view type() const = 0;
  /// The name given by the user, or empty.
  virtual std::string_view name() const = 0;
  /// Takes one input, as layers do; vertices take several.
  virtual bool takesOneInput() const = 0;
  /// Only takes inputs of rank 1; a network inserts a Flatten before it.
  virtual bool wantsFlatInput() const = 0;
  /// Takes indices (int64) instead of numbers; must come first.
  virtual bool wantsIndexInput() const = 0;
  virtual PaddingUse paddingUse() const = 0;
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
