#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "muster/core/device/context.h"
#include "muster/core/ops/update_rules.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// A run of elements of a parameter block with the same settings.
struct UpdateRange {
  std::int64_t begin = 0, end = 0;
  double learningRate = 1;  ///< factor of the step's
  float l1 = 0, l2 = 0;     ///< added to the gradient: l1 sign(w) + l2 w
  float weightDecay = 0;  ///< decoupled: w loses learningRate * weightDecay * w (Loshchilov and Hutter 2019)
  bool regularised = true;  ///< takes the decay that an updater has of its own (AdamW)
};

/// The blocks of an update, float32 [P] each, RowMajor; `state` as many as the rule has.
struct UpdateBlocks {
  Tensor parameters;
  Tensor gradients;
  std::array<Tensor, 2> state;
};

/// Settings of an update that are the same at each step.
struct UpdateSettings {
  UpdateRule rule = {};
  double weightDecay = 0;  ///< added to that of the regularised ranges (AdamW)
  double clipNorm = 0;     ///< 0: off. Scales the gradient of all ranges together down to this Euclidean norm
  double clipValue = 0;    ///< 0: off. Clamps each element after that
};

/// How many numbers a step's update reads: those of `update::StepNumbers`.
inline constexpr std::size_t kUpdateNumbers = sizeof(update::StepNumbers) / sizeof(double);

/// Writes the numbers of a step.
/// @param t        iterations including this one, from 1.
/// @param numbers  float64 [kUpdateNumbers] on the CPU.
void writeUpdateNumbers(const UpdateRule& rule, double learningRate, std::int64_t t, double gradientScale,
                        Tensor& numbers);

/// Results of an update, which stay on its device for later readers: each float64 [1] on the blocks'
/// device, or undefined.
struct UpdateGuard {
  /// Gets the first element of the ranges whose gradient is not finite, or -1. If defined, gradients are
  /// checked, and one that is not finite changes nothing.
  Tensor badGradient;
  /// Gets 1 if the update changed nothing because of a loss or a gradient, or left a number that is not
  /// finite (on a GPU), else 0. A merge may read it.
  Tensor refused;
};

/// An update of one parameter block, planned for one set of ranges: it clips the gradient, adds L1 and L2,
/// applies the rule, and applies weight decay to the old value of the parameter. Elements outside the ranges
/// do not change. On a GPU the whole block takes one kernel, or two with clipping by norm or a guard; a graph
/// may record them.
///
/// On the CPU, a gradient or a new value that is not finite leaves the block unchanged, and the penalty is
/// NaN. On a GPU, the gradient is checked only if there is a guard, and a new value that is not finite is
/// written, with a penalty of NaN.
///
/// Allocates nothing. It belongs to the context it was planned for; one thread at a time.
class UpdatePlan {
 public:
  virtual ~UpdatePlan() = default;
  /// @param numbers  float64 [kUpdateNumbers] on the blocks' device, read when the work is done.
  /// @param penalty  float64 [1] there: gets sum(l1 |w| + l2/2 w^2) at the parameters from before, summed in
  ///                 float64 in an order that does not depend on the number of threads.
  /// @param losses   float64 [n kLossNumbers] there, what `lossInto` left of n losses. If one of them is not
  ///                 finite or met a class out of range, nothing is updated, and the penalty is 0. Undefined:
  ///                 nothing is checked.
  /// @throws InvalidArgument naming the tensor that does not fit.
  void run(const UpdateBlocks& blocks, const Tensor& numbers, Tensor& penalty, const Tensor& losses = {},
           const UpdateGuard& guard = {});

 protected:
  UpdatePlan(const UpdateRule& rule, std::int64_t elements, Device device);
  /// What a guard's tensors hold; null if they are undefined.
  struct Guard {
    double *badGradient, *refused;
  };

 private:
  /// `run` after its checks. @param losses  kLossNumbers for each loss.
  virtual void compute(const UpdateBlocks& blocks, const update::StepNumbers* numbers, double* penalty,
                       std::span<const double> losses, const Guard& guard) = 0;

  int states_;
  std::int64_t elements_;
  Device device_;
};

/// @param elements  of the blocks.
/// @throws InvalidArgument if a range is not within the elements, or a setting is negative.
std::unique_ptr<UpdatePlan> planUpdate(const UpdateSettings& settings, std::int64_t elements,
                                       std::span<const UpdateRange> ranges, Context& context);

/// One update with learning rate 1: makes a plan, runs it and waits. Steps use a plan of their own.
/// @return the penalty.
double updateOnce(const UpdateSettings& settings, const UpdateBlocks& blocks,
                  std::span<const UpdateRange> ranges, Context& context, std::int64_t t = 1,
                  double gradientScale = 1);

/// Plain SGD on one tensor of any shape: parameters -= learningRate * gradients, with the bits of
/// `updateOnce`.
/// @throws InvalidArgument unless both are float32, row-major and of one shape on one device.
void updateSgd(Tensor& parameters, const Tensor& gradients, float learningRate, Context& context);

// Both wait for the number that they return, and allocate nothing on the CPU.
// @throws InvalidArgument if a tensor is not float32 and row-major, or a range is not within it.

/// Sum of squares over [begin, end), in float64, in an order that does not depend on the number of threads.
double squaredNorm(const Tensor& x, std::int64_t begin, std::int64_t end, Context& context);

/// The penalty over the ranges: bit for bit what an update of them would return.
double regularisationPenalty(const Tensor& parameters, std::span<const UpdateRange> ranges, Context& context);

namespace cpu {
std::unique_ptr<UpdatePlan> planUpdate(const UpdateSettings& settings, std::int64_t elements,
                                       std::vector<UpdateRange> ranges, Context& context);
double squaredNorm(const Tensor& x, std::int64_t begin, std::int64_t end, Context& context);
double regularisationPenalty(const Tensor& parameters, std::span<const UpdateRange> ranges, Context& context);
}  // namespace cpu
namespace cuda {
std::unique_ptr<UpdatePlan> planUpdate(const UpdateSettings& settings, std::int64_t elements,
                                       std::vector<UpdateRange> ranges, Context& context);
double squaredNorm(const Tensor& x, std::int64_t begin, std::int64_t end, Context& context);
double regularisationPenalty(const Tensor& parameters, std::span<const UpdateRange> ranges, Context& context);
}  // namespace cuda

}  // namespace muster
