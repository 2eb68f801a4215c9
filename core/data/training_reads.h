#pragma once

#include <string_view>

#include "muster/core/data/data_set_iterator.h"

namespace muster {

/// While it lives, a training reads this iterator, and those that it reads (DataSetIterator::inner). Another
/// reader would advance them, and the training would miss batches without an error. Thread-safe.
class TrainingReads {
 public:
  /// @throws InvalidArgument if another training of this process reads one of them; std::bad_alloc
  explicit TrainingReads(const DataSetIterator& data);
  ~TrainingReads();
  TrainingReads(const TrainingReads&) = delete;
  TrainingReads& operator=(const TrainingReads&) = delete;

 private:
  const DataSetIterator& data_;
};

/// Called by whatever reads a data set on its own. @param what  begins the error, as in "evaluate".
/// @throws InvalidArgument if a training of this process reads the iterator, or both read the same one.
void requireNotRead(const DataSetIterator& data, std::string_view what);

}  // namespace muster
