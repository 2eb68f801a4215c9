#pragma once

#include "muster/core/data/data_set_iterator.h"

namespace muster {

/// While it lives, a training reads this iterator: an evaluation would advance it, and the training would
/// miss batches without an error. Thread-safe.
class TrainingReads {
 public:
  /// @throws std::bad_alloc
  explicit TrainingReads(const DataSetIterator& data);
  ~TrainingReads();
  TrainingReads(const TrainingReads&) = delete;
  TrainingReads& operator=(const TrainingReads&) = delete;

 private:
  const DataSetIterator& data_;
};

/// Called by every evaluation. @throws InvalidArgument if a training of this process reads the
/// iterator.
void requireNotRead(const DataSetIterator& data);

}  // namespace muster
