#include "muster/core/listeners/evaluation_listener.h"

#include "muster/core/base/error.h"

namespace muster {

EvaluationListener::EvaluationListener(DataSetIterator& data, std::int64_t everyEpochs, LineSink sink)
    : data_(data), everyEpochs_(everyEpochs), sink_(std::move(sink)) {
  require(everyEpochs >= 1, "evaluation listener: everyEpochs must be at least 1, got {}", everyEpochs);
}

void EvaluationListener::onEpochEnd(const EpochEvent& event) {
  const std::int64_t finished = event.epoch + 1;
  if (finished % everyEpochs_ != 0) return;
  results_.push_back({finished, evaluate(event.trainer.model(), data_)});
  const Evaluation& e = results_.back().evaluation;
  writeLine(sink_, fmt::format("epoch {}: accuracy {:.4f}, F1 {:.4f} on {} examples", finished, e.accuracy(),
                               e.f1(), e.examples()));
}

}  // namespace muster
