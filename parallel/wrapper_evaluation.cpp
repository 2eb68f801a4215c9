#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/data/training_reads.h"
#include "muster/core/device/arithmetic_scope.h"
#include "muster/parallel/evaluation/evaluation_run.h"
#include "muster/parallel/wrapper_impl.h"

namespace muster {

AnyEvaluation ParallelWrapper::Impl::evaluateTask(DataSetIterator& data, std::optional<Task> task) {
  if (!running_.exchange(true)) {
    const Call call(*this);
    model_.requireNotTrainedElsewhere("evaluate");
    requireNotRead(data, "evaluate");
    const ArithmeticScope arithmetic(model_.context().threads());
    if (!session_) beginSession();
    const StallWatch::Scope scope(session_->watch(), "evaluate()");
    return evaluate(data, task, options_.nodes.link());
  }
  require(inListener(),
          "evaluate: the wrapper is at work; while fit() runs only its listeners may evaluate, in calls on "
          "the thread that called fit(), so not in onIteration");
  requireNotRead(data, "evaluate");
  struct BackInListener {
    Activity& caller;
    ~BackInListener() { caller.set(Activity::Kind::InListener); }
  } back{caller_};
  return evaluate(data, task, fit_ && fit_->calledOnAllNodes() ? options_.nodes.link() : nullptr);
}

/// @param link  to the nodes that evaluate together; null: this one alone.
AnyEvaluation ParallelWrapper::Impl::evaluate(DataSetIterator& data, std::optional<Task> task,
                                              NodeLink* link) {
  if (link) link->requireWhole();
  FailingLink failing(link);
  if (!session_) beginSession();  // in a listener, at the end of a fit over elastic nodes
  Model& model = this->model();
  model.block(BlockKind::Parameters);  // throws if the model is not initialised
  requireSameInput(data, model.inputDescription(), "evaluate");
  Batch first;
  const bool read = !replicas().made();
  if (read) {
    require(session_->prepareModel(data, 0, {}, first), "evaluate: the data set has no batches");
    caller_.set(Activity::Kind::WaitingForWorkers);
    session_->makeReplicas(first, false);
  }
  // One more batch per worker keeps all workers busy. The training's batches are not used: they may hold data
  // that was read ahead, or an iterator's own memory.
  const auto ahead = std::min<std::int64_t>(options_.prefetchBuffer, options_.workers);
  EvaluationRun evaluation(model, task, replicas().threads(), ahead, link, &replicas().exchange(),
                           internalsOf(options_).root.string());
  failing.dismiss();  // from now on a failure is reported together with the counts
  if (!fit_ || !fit_->atRoundEnd()) return evaluation.evaluate(data, caller_, read ? &first : nullptr);
  const bool done =
      fit_->visit([&](int worker) { evaluation.work(worker); }, [&] { evaluation.deal(data, caller_); });
  if (!done) throw Error("evaluate: the training has failed meanwhile, and its workers have ended");
  return evaluation.result();
}

}  // namespace muster
