#include "muster/parallel/wrapper_evaluation.h"

#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/parallel/evaluation/evaluation_run.h"
#include "muster/parallel/training/first_batch.h"

namespace muster {

AnyEvaluation WrapperEvaluation::evaluateOverNodes(DataSetIterator& data, std::optional<Task> task) {
  NodeLink* const link = options_.nodes.link();
  if (link) link->requireWhole();
  try {
    return evaluate(data, task, link);
  } catch (...) {
    if (link && !counting_) link->fail();
    throw;
  }
}

bool WrapperEvaluation::prepare(DataSetIterator& data, Batch& first) {
  Model& model = wrapper_.model();
  model.block(BlockKind::Parameters);  // throws if the model is not initialised
  requireSameInput(data, model.inputDescription(), "evaluate");
  if (session_.replicas().made()) return false;
  require(prepareModel(model, data, caller_, 0, {}, first), "evaluate: the data set has no batches");
  caller_.set(Activity::Kind::WaitingForWorkers);
  session_.makeReplicas(first, false);
  return true;
}

AnyEvaluation WrapperEvaluation::evaluate(DataSetIterator& data, std::optional<Task> task, NodeLink* link) {
  Batch first;
  const bool read = prepare(data, first);
  // One more batch per worker keeps all workers busy. The training's batches are not used: they may hold data
  // that was read ahead, or an iterator's own memory.
  const auto ahead = std::min<std::int64_t>(options_.prefetchBuffer, options_.workers);
  EvaluationRun evaluation(wrapper_.model(), task, session_.replicas().threads(), ahead, link,
                           &session_.replicas().exchange(), internalsOf(options_).root.string());
  counting_ = true;
  if (!fit_ || !fit_->atRoundEnd()) return evaluation.evaluate(data, caller_, read ? &first : nullptr);
  const bool done =
      fit_->visit([&](int worker) { evaluation.work(worker); }, [&] { evaluation.deal(data, caller_); });
  if (!done) throw Error("evaluate: the training has failed meanwhile, and its workers have ended");
  return evaluation.result();
}

}  // namespace muster
