// What fit() prepares before the training: the replicas, with the state of a checkpoint, and the strategy.
#include "muster/core/base/error.h"
#include "muster/parallel/training/agreement.h"
#include "muster/parallel/training/first_batch.h"
#include "muster/parallel/training/named_call.h"
#include "muster/parallel/wrapper_impl.h"

namespace muster {

Agreement ParallelWrapper::Impl::agreement(const DataSetIterator& data, std::int64_t epochs,
                                           std::int64_t nextBatch, const Batch* first) {
  return {.model = model_,
          .data = data,
          .strategy = options_.strategy,
          .listeners = options_.listeners,
          .workers = options_.workers,
          .threads = options_.threadsPerWorker,
          .onGpus = !options_.devices.front().isCpu(),
          .mathMode = options_.mathMode,
          .epochs = epochs,
          .version = internalsOf(options_).version,
          .nextBatch = nextBatch,
          .first = first};
}

/// @return the batches if the workers should read them themselves, without a reader thread; else nullptr.
const NumberedBatches* ParallelWrapper::Impl::numberedFor(const DataSetIterator& data,
                                                          const Resumption& resumed) {
  if (!placements_.noCoreForReader || !resumed.position.trainedLater.empty()) return nullptr;
  const bool inTurn = !replicas().traits().arrivals;
  return inTurn ? callIterator("number its batches", [&] { return data.numbered(); }) : nullptr;
}

/// @return whether `first` holds the first batch to train, which was read to prepare the model.
bool ParallelWrapper::Impl::prepareReplicas(DataSetIterator& data, std::int64_t epochs,
                                            const Resumption& resumed, FitParts* parts, Batch& first) {
  const bool kept = parts && parts->first && model_.epoch() == 0 && resumed.position.nextBatch == 0;
  bool any = kept;
  if (kept) first = *parts->first;
  if (!kept) fitBeforeTraining(model_, *usersData_, caller_);
  if (!replicas().made()) {
    any = kept || prepareModel(model_, data, caller_, model_.epoch(), resumed.position, first);
    require(any || !model_.blocks().empty(), "fit: the data set has no batches");
    caller_.set(Activity::Kind::WaitingForWorkers);
    session_->makeReplicas(first, true);
  }
  caller_.set(Activity::Kind::WaitingForWorkers);
  if (auto* const link = options_.nodes.link())
    requireAgreement(*link, agreement(data, epochs, resumed.position.nextBatch, any ? &first : nullptr));
  namingResumedFile(model_, [&] { replicas().begin(session_->strategy(), resumed); });
  if (parts) parts->first.reset();
  return any;
}

}  // namespace muster
