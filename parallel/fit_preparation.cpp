#include "muster/parallel/fit_preparation.h"

#include "muster/core/base/error.h"
#include "muster/parallel/training/first_batch.h"
#include "muster/parallel/training/named_call.h"

namespace muster {

Agreement agreementOf(Model& model, const ParallelOptions& options, const DataSetIterator& data,
                      std::int64_t epochs, std::int64_t nextBatch, const Batch* first) {
  return {.model = model,
          .data = data,
          .strategy = options.strategy,
          .listeners = options.listeners,
          .workers = options.workers,
          .threads = options.threadsPerWorker,
          .onGpus = !options.devices.front().isCpu(),
          .mathMode = options.mathMode,
          .epochs = epochs,
          .version = internalsOf(options).version,
          .nextBatch = nextBatch,
          .first = first};
}

void FitPreparation::prepare(DataSetIterator& users, DataSetIterator& data, std::int64_t epochs,
                             FitParts* parts) {
  NodeLink* const link = options_.nodes.link();
  if (link) link->requireWhole();
  ReplicaSet& replicas = session_.replicas();
  resumed_ = namingResumedFile(
      model_, [&] { return resumptionOf(model_, data, options_.strategy, replicas.place().workers()); });
  readFirst(users, data, parts);
  caller_.set(Activity::Kind::WaitingForWorkers);
  if (link)
    requireAgreement(*link,
                     agreementOf(model_, options_, data, epochs, resumed_.position.nextBatch, first()));
  namingResumedFile(model_, [&] { replicas.begin(session_.strategy(), resumed_); });
  if (parts) parts->first.reset();
  number(data);
}

/// Prepares the model, and makes the replicas if there are none.
void FitPreparation::readFirst(DataSetIterator& users, DataSetIterator& data, FitParts* parts) {
  read_ = parts && parts->first && model_.epoch() == 0 && resumed_.position.nextBatch == 0;
  if (read_) first_ = *parts->first;
  if (!read_) fitBeforeTraining(model_, users, caller_);
  if (session_.replicas().made()) return;
  read_ = read_ || prepareModel(model_, data, caller_, model_.epoch(), resumed_.position, first_);
  require(read_ || !model_.blocks().empty(), "fit: the data set has no batches");
  caller_.set(Activity::Kind::WaitingForWorkers);
  session_.makeReplicas(first_, true);
}

void FitPreparation::number(const DataSetIterator& data) {
  if (!placements_.noCoreForReader || !resumed_.position.trainedLater.empty()) return;
  if (session_.replicas().traits().arrivals) return;
  numbered_ = callIterator("number its batches", [&] { return data.numbered(); });
}

}  // namespace muster
