#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// A run of elements of a parameter block with the same settings.
struct UpdateRange {
  std::int64_t begin = 0, end = 0;
  float learningRate = 0;
  float l1 = 0, l2 = 0;   ///< added to the gradient: l1 sign(w) + l2 w
  float weightDecay = 0;  ///< decoupled: w loses learningRate * weightDecay * w (Loshchilov and Hutter 2019)
  bool regularised = true;  ///< takes the decay that an updater has of its own (AdamW)
};

/// The blocks of an update, float32 [P] each, RowMajor; `state` as many as the rule has.
struct UpdateBlocks {
  Tensor parameters;
  Tensor gradients;
  std::array<Tensor, 2> state;
};

/// What happens to a gradient before regularisation: g = clamp(g * scale, -clipValue, clipValue).
struct GradientClip {
  float scale = 1;      ///< from clipping by norm
  float clipValue = 0;  ///< 0: not clipped by value
};

// Each update is one pass over the ranges, which touches nothing outside them. With g the gradient after
// clipping and regularisation, and lr the range's learning rate, it does what its comment says, then weight
// decay with the parameter's value from before. It returns the penalty sum(l1 |w| + l2/2 w^2) at the
// parameters from before, accumulated in float64 in an order that does not depend on the number of threads.

/// w -= lr g.
double updateSgd(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                 Context& context);

/// Plain SGD on one tensor of any shape: parameters -= learningRate * gradients, the same arithmetic as
/// above.
/// @throws InvalidArgument unless both are float32, row-major and of one shape on one device.
void updateSgd(Tensor& parameters, const Tensor& gradients, float learningRate, Context& context);

/// v = momentum v + g;  w -= lr (g + momentum v). The learning rate stands outside the velocity, as in
/// PyTorch (Sutskever et al. 2013, in the form of Bengio et al. 2013).
double updateNesterovs(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                       float momentum, Context& context);

/// m = beta1 m + (1-beta1) g;  v = beta2 v + (1-beta2) g^2;
/// w -= lr / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + epsilon). Source: Kingma and Ba 2015.
struct AdamScalars {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  // float64, for 1 - beta is small
  std::int64_t t = 1;                                 ///< iterations including this one
  float weightDecay = 0;                              ///< added to that of the regularised ranges (AdamW)
};
double updateAdam(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                  const AdamScalars& scalars, Context& context);

/// s = decay s + (1-decay) g^2;  w -= lr g / (sqrt(s) + epsilon). Source: Tieleman and Hinton 2012.
double updateRmsProp(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                     double decay, float epsilon, Context& context);

/// s += g^2;  w -= lr g / (sqrt(s) + epsilon). Source: Duchi et al. 2011.
double updateAdaGrad(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                     float epsilon, Context& context);

// On a GPU these wait for the penalty that they return, and make a plan each time. Steps use a plan of their
// own.

/// What an update does at each step alike.
struct UpdateSettings {
  enum class Rule { Sgd, Nesterovs, Adam, RmsProp, AdaGrad };
  Rule rule = Rule::Sgd;
  double momentum = 0;                ///< of Nesterovs
  double beta1 = 0.9, beta2 = 0.999;  ///< of Adam
  double decay = 0.95;                ///< of RmsProp
  double epsilon = 1e-8;              ///< of Adam, RmsProp and AdaGrad
  double weightDecay = 0;             ///< added to that of the regularised ranges (AdamW)
  double clipNorm = 0;   ///< 0: off. Scales the gradient of all ranges together down to this Euclidean norm
  double clipValue = 0;  ///< 0: off. Clamps each element after that
};

/// How many numbers a step's update is told, and their order: learning rate, t (iterations including this
/// one), 1 / (1 - beta1^t), 1 / (1 - beta2^t), what gradients are multiplied by.
inline constexpr std::size_t kUpdateNumbers = 5;

/// Writes them. @param numbers  float64 [kUpdateNumbers] on the CPU.
void writeUpdateNumbers(const UpdateSettings& settings, double learningRate, std::int64_t t,
                        double gradientScale, Tensor& numbers);

/// An update of one parameter block planned for one set of ranges: on a GPU one kernel for the whole block
/// and every rule, two with clipping by norm, which may be recorded in a graph. Running it allocates nothing.
/// Belongs to the context it was planned for; one thread at a time.
class UpdatePlan {
 public:
  virtual ~UpdatePlan() = default;
  /// Updates as the functions above do; each range's learning rate is the step's times the range's.
  /// @param numbers  float64 [kUpdateNumbers] on the blocks' device, read when the work is done.
  /// @param penalty  float64 [1] there: gets the penalty at the parameters from before.
  /// @param losses   float64 [n kLossNumbers] there, what `lossInto` left of n losses: where one of them is
  /// not
  ///                 finite or met a class out of range, nothing is updated, and the penalty is 0. Undefined:
  ///                 it is updated in any case.
  virtual void run(const UpdateBlocks& blocks, const Tensor& numbers, Tensor& penalty,
                   const Tensor& losses = {}) = 0;
};

/// @param elements  of the blocks.  @param ranges  whose learning rates are factors of the step's.
/// @throws InvalidArgument where a range does not lie in the elements, or a setting is negative.
std::unique_ptr<UpdatePlan> planUpdate(const UpdateSettings& settings, std::int64_t elements,
                                       std::span<const UpdateRange> ranges, Context& context);

// All updates: @throws InvalidArgument naming the op where a block is not float32 of the parameters' size, or
// a range does not lie in it. One that succeeds allocates nothing.

/// Sum of squares over [begin, end), in float64, in an order that does not depend on the number of threads.
double squaredNorm(const Tensor& x, std::int64_t begin, std::int64_t end, Context& context);

/// The penalty sum(l1 |w| + l2/2 w^2) over the ranges: bit for bit what an update of them would return.
double regularisationPenalty(const Tensor& parameters, std::span<const UpdateRange> ranges, Context& context);

namespace cpu {
double updateSgd(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                 Context& context);
double updateNesterovs(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                       float momentum, Context& context);
double updateAdam(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                  const AdamScalars& scalars, Context& context);
double updateRmsProp(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                     double decay, float epsilon, Context& context);
double updateAdaGrad(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                     float epsilon, Context& context);
double squaredNorm(const Tensor& x, std::int64_t begin, std::int64_t end, Context& context);
double regularisationPenalty(const Tensor& parameters, std::span<const UpdateRange> ranges, Context& context);
}  // namespace cpu
namespace cuda {
double updateSgd(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                 Context& context);
double updateNesterovs(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                       float momentum, Context& context);
double updateAdam(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                  const AdamScalars& scalars, Context& context);
double updateRmsProp(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                     double decay, float epsilon, Context& context);
double updateAdaGrad(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                     float epsilon, Context& context);
double squaredNorm(const Tensor& x, std::int64_t begin, std::int64_t end, Context& context);
double regularisationPenalty(const Tensor& parameters, std::span<const UpdateRange> ranges, Context& context);
std::unique_ptr<UpdatePlan> planUpdate(const UpdateSettings& settings, std::int64_t elements,
                                       std::span<const UpdateRange> ranges, Context& context);
}  // namespace cuda

}  // namespace muster
