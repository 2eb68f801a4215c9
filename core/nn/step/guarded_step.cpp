#include "muster/core/nn/step/guarded_step.h"

#include "muster/core/base/error.h"
#include "muster/core/data/non_finite_value.h"
#include "muster/core/nn/model.h"
#include "muster/core/optim/finite_gradient.h"

namespace muster::detail {
namespace {

void requireFiniteGradients(Model& model) {
  for (const auto& block : model.blocks())
    if (block.kind == BlockKind::Gradients) requireFiniteGradient(block);
}

/// If statistics and gradient are both not finite, the gradient says more.
void requireFiniteState(Model& model) try {
  requireFiniteStatistics(model.blocks());
} catch (const NonFiniteScore&) {
  requireFiniteGradients(model);
  throw;
}

}  // namespace

StepScore GuardedStep::run(Model& model, const Batch& batch, bool checksGradient) {
  statistics_.keep(model.blocks(), model.context());
  try {
    StepScore score = model.gradient(batch).wait();
    requireFinite(score);  // before the update, so that the caller can handle it
    if (checksGradient) requireFiniteGradients(model);
    requireFiniteState(model);
    score.score += model.update(batch.stamp);
    return score;
  } catch (const NonFiniteScore&) {
    statistics_.restore(model.blocks(), model.context());
    if (const auto where = nonFiniteValue(batch)) throw NonFiniteScore(*where);
    throw;
  } catch (...) {  // the forward pass may have changed them
    statistics_.restore(model.blocks(), model.context());
    throw;
  }
}

}  // namespace muster::detail
