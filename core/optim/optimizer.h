#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "muster/core/optim/state_block.h"
#include "muster/core/optim/updaters.h"

namespace muster {

/// How a model is trained, whatever its architecture.
struct TrainingOptions {
  Updater updater = {};
  double l1 = 0;           ///< adds l1 sign(w) to the gradients of weights, l1 |w| to the score
  double l2 = 0;           ///< adds l2 w to the gradients of weights, l2/2 |w|^2 to the score
  double weightDecay = 0;  ///< decoupled, with every updater: weights lose lr * weightDecay * w
  double clipNorm = 0;     ///< 0: off. Scales the whole gradient down to this Euclidean norm
  double clipValue = 0;    ///< 0: off. Clamps each element to [-clipValue, clipValue], after clipNorm
  /// Gradient accumulation: a step takes this many batches of the iterator and equals a step on the joined
  /// batch. A network computes the batches one after the other, in the memory of one, and adds up their
  /// gradients, each weighted by its loss normaliser. Iterations count steps. At least 1.
  std::int64_t accumulate = 1;

  void fields(Fields& f);
  /// @throws InvalidArgument naming the option that is negative or not finite.
  void validate() const;
};

/// Applies an updater to a parameter block, and owns the updater's state blocks.
///
/// Order within a step: clip by norm, clip by value, add L1 and L2, update, decay. The norm is that of the
/// loss's gradient over all segments that are not frozen. Frozen segments and padding are never touched.
class Optimizer {
 public:
  /// @param parameters  the block for `apply`, or one with the same segments.
  Optimizer(TrainingOptions options, const StateBlock& parameters);

  /// Plans and allocates for `apply`; otherwise the first call does so. On a GPU an allocation waits for the
  /// work of all workers there.
  void prepare(const StateBlock& parameters, Context& context);

  /// One update. Only the first call allocates, unless prepared. @return the regularisation penalty at the
  /// parameters before the update; waits for it on a GPU. NaN, or UpdateRefused: nothing has changed.
  /// @param iteration, epoch  before this one, for the learning rate.
  /// @param updates  number of updates including this one; 0: iteration + 1.
  double apply(StateBlock& parameters, const StateBlock& gradients, std::int64_t iteration,
               std::int64_t epoch, Context& context, std::int64_t updates = 0);

  // An update in two halves, for steps that do not wait: the first half writes the update's numbers on the
  // CPU and copies them to the device, where the second half reads them.

  /// Whether the updater can be applied in two halves. An updater with its own `apply` cannot.
  bool enqueues() const { return settings_.has_value(); }
  /// Plans it for a block on the context's device; later calls for the same context do nothing.
  void plan(const StateBlock& parameters, Context& context);
  /// @param updates  number of updates including this one.
  /// @param numbers  float64 [kUpdateNumbers] on the CPU.
  void writeNumbers(std::int64_t iteration, std::int64_t epoch, std::int64_t updates, Tensor& numbers) const;
  /// Enqueues the planned update.
  /// @param numbers  of the step, on the device, read when the work is done.
  /// @param penalty  float64 [1] on the device: receives what `apply` returns.
  /// @param losses   of the step, see `UpdatePlan::run`: with a bad loss neither parameters nor state change.
  /// @param badGradient  see UpdateGuard.
  void enqueue(StateBlock& parameters, const StateBlock& gradients, const Tensor& numbers, Tensor& penalty,
               const Tensor& losses = {}, const Tensor& badGradient = {});
  /// float64 [1] on the device, after `plan`: 1 if the last update that was enqueued changed nothing, because
  /// of a loss or a gradient that is not finite, else 0.
  const Tensor& refused() const { return refused_; }

  /// sum(l1 |w| + l2/2 w^2) over the regularised segments that are not frozen, in float64: what `apply` would
  /// return.
  double penalty(const StateBlock& parameters, Context& context) const;

  /// Multiplies all learning rates by a number that may change between updates.
  void followFactor(std::shared_ptr<const double> factor) { factor_ = std::move(factor); }

  const TrainingOptions& options() const { return options_; }
  /// The updater's state, kind UpdaterState, rule Average, named after `Updater::stateNames()`, with the
  /// parameters' segments.
  std::span<StateBlock> state() { return state_; }
  std::span<const StateBlock> state() const { return state_; }

 private:
  double applyOwn(const StateBlock& parameters, const StateBlock& gradients, std::int64_t iteration,
                  std::int64_t epoch, std::int64_t updates, Context& context);
  double applyUnchecked(const UpdateBlocks& blocks, std::int64_t iteration, std::int64_t epoch,
                        std::int64_t updates, Context& context);
  /// Whether all segments that are updated are finite.
  bool isFinite(const StateBlock& block, Context& context) const;
  UpdateBlocks blocksOf(const StateBlock& parameters, const StateBlock& gradients) const;
  /// The gradient's factor from clipping by norm.
  float clipScale(const Tensor& gradients, Context& context) const;

  /// @throws InvalidArgument unless it is finite and not negative: a schedule may become so after its start.
  double learningRate(std::int64_t iteration, std::int64_t epoch) const;

  TrainingOptions options_;
  std::shared_ptr<const double> factor_;  // of the learning rate; null: 1
  std::vector<StateBlock> state_;
  std::vector<UpdateRange> ranges_;      // with factors of the learning rate
  std::vector<UpdateRange> stepRanges_;  // with the step's learning rates: for `applyOwn` only

  std::optional<UpdateSettings> settings_;  // empty: the updater has its own `apply`
  std::unique_ptr<UpdatePlan> plan_;
  const Context* plannedFor_ = nullptr;
  std::vector<Tensor> kept_;  // of `applyOwn`: the parameters and the state from before the update
  // Tensors of `apply`; on the CPU each pair is one tensor. Outcomes are {penalty, bad gradient}.
  Tensor hostNumbers_, numbers_, hostOutcome_, outcome_, penalty_, badGradient_;
  Tensor refused_;
};

}  // namespace muster
