#pragma once

#include <cstdint>

#include "muster/core/data/data_set_iterator.h"
#include "muster/parallel/training/agreement.h"
#include "muster/parallel/training/fit_setting.h"
#include "muster/parallel/training/resumption.h"
#include "muster/parallel/wrapper_session.h"

namespace muster {

/// What the nodes of a training with these options must have in common. @param first  null: it was not read.
Agreement agreementOf(Model& model, const ParallelOptions& options, const DataSetIterator& data,
                      std::int64_t epochs, std::int64_t nextBatch, const Batch* first);

/// What a training with the current nodes begins with: the replicas, with the state of the model or of its
/// checkpoint, the same on all nodes. Used by the thread that called `fit()`.
class FitPreparation {
 public:
  /// @param caller  shows what this thread does. All arguments must outlive this.
  FitPreparation(Model& model, const ParallelOptions& options, const Placements& placements,
                 WrapperSession& session, Activity& caller)
      : model_(model), options_(options), placements_(placements), session_(session), caller_(caller) {}

  /// Waits for the other nodes.
  /// @param users  the user's iterator. @param data  what is read: its batches, joined.
  /// @param parts  of a fit over elastic nodes; else null.
  /// @throws TrainingError for a failure; InvalidArgument if there are no batches, or as requireAgreement;
  ///         SavedStateError as resumptionOf; OutOfMemory.
  void prepare(DataSetIterator& users, DataSetIterator& data, std::int64_t epochs, FitParts* parts);

  // After `prepare`; without it nothing is resumed and nothing was read.

  const Resumption& resumed() const { return resumed_; }
  /// The first batch to train if it was read to prepare the model; else null.
  Batch* first() { return read_ ? &first_ : nullptr; }
  /// The batches if the workers should read them themselves, without a reader thread; else null.
  const NumberedBatches* numbered() const { return numbered_; }

 private:
  void readFirst(DataSetIterator& users, DataSetIterator& data, FitParts* parts);
  void number(const DataSetIterator& data);

  Model& model_;
  const ParallelOptions& options_;
  const Placements& placements_;
  WrapperSession& session_;
  Activity& caller_;
  Resumption resumed_;
  Batch first_;
  bool read_ = false;  // whether first_ holds the first batch to train
  const NumberedBatches* numbered_ = nullptr;
};

}  // namespace muster
