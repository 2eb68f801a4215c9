#pragma once

#include <vector>

#include "muster/core/data/data_set_iterator.h"

namespace muster {

/// Reads the next batch into one that was used before. It has only the masks that the iterator gives: an
/// iterator that gives masks with some batches only may leave those of an earlier one. Memory of masks is
/// kept for an iterator that fills them by `Batch::ensure`.
/// @return as `DataSetIterator::next`.
inline bool nextBatch(DataSetIterator& data, Batch& batch) {
  const Shape unset{0, 0, 0, 0, 0, 0};  // no mask has so many dimensions
  for (auto& mask : batch.masks) mask.value.resize(unset, mask.value.dtype());
  if (!data.next(batch)) return false;
  std::erase_if(batch.masks, [&](const NamedTensor& mask) { return mask.value.shape() == unset; });
  return true;
}

}  // namespace muster
