#pragma once

#include <optional>

#include "muster/core/eval/any_evaluation.h"
#include "muster/core/nn/listener.h"
#include "muster/parallel/training/fit_call.h"
#include "muster/parallel/wrapper_session.h"

namespace muster {

/// One evaluation of the user's model by the workers of a wrapper: in a call of its own, or in a listener's
/// call during a fit. Makes the replicas if there are none. Used by the thread that called the wrapper.
class WrapperEvaluation {
 public:
  /// @param wrapper  gives the model. @param caller  shows what this thread does.
  /// @param fit  the fit that is running; null: none. All arguments must outlive this.
  WrapperEvaluation(Trainer& wrapper, const ParallelOptions& options, WrapperSession& session,
                    Activity& caller, FitCall* fit)
      : wrapper_(wrapper), options_(options), session_(session), caller_(caller), fit_(fit) {}

  /// Evaluates with the other nodes, if there are any. A node that fails before it has counts reports to the
  /// other nodes, which wait for these.
  /// @throws InvalidArgument for data that do not fit; TrainingError as EvaluationRun.
  AnyEvaluation evaluateOverNodes(DataSetIterator& data, std::optional<Task> task);
  /// Evaluates without other nodes. @throws as `evaluateOverNodes`.
  AnyEvaluation evaluateHere(DataSetIterator& data, std::optional<Task> task) {
    return evaluate(data, task, nullptr);
  }

 private:
  AnyEvaluation evaluate(DataSetIterator& data, std::optional<Task> task, NodeLink* link);
  /// @return whether `first` holds the first batch, which was read to make the replicas.
  bool prepare(DataSetIterator& data, Batch& first);

  Trainer& wrapper_;
  const ParallelOptions& options_;
  WrapperSession& session_;
  Activity& caller_;
  FitCall* const fit_;
  bool counting_ = false;  // a failure is reported together with the counts
};

}  // namespace muster
