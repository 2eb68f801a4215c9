#pragma once

#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/data/data_set_iterator.h"

namespace muster {

namespace detail {

/// Lets `read` fill a batch that was used before. The batch has only the masks that `read` gives: an iterator
/// that gives masks with some batches only may leave those of an earlier one. Memory of masks is kept for an
/// iterator that fills them by `Batch::ensure`. @return what `read` returns; if false, the batch has no masks
/// to use.
template <typename Read>
bool readWithItsMasks(Batch& batch, Read read) {
  const Shape unset{0, 0, 0, 0, 0, 0};  // no mask has so many dimensions
  for (auto& mask : batch.masks) mask.value.resize(unset, mask.value.dtype());
  if (!read()) return false;
  std::erase_if(batch.masks, [&](const NamedTensor& mask) { return mask.value.shape() == unset; });
  return true;
}

}  // namespace detail

/// Reads the next batch into one that was used before, without that one's masks.
/// @return as `DataSetIterator::next`.
inline bool nextBatch(DataSetIterator& data, Batch& batch) {
  return detail::readWithItsMasks(batch, [&] { return data.next(batch); });
}

/// Reads batch `number` into one that was used before, without that one's masks.
/// @throws InvalidArgument if it has another number of examples than announced.
inline void nextBatch(const NumberedBatches& batches, std::int64_t number, Batch& batch) {
  detail::readWithItsMasks(batch, [&] {
    batches.readBatch(number, batch);
    return true;
  });
  const std::int64_t examples = batch.examples(), each = batches.examplesEach();
  const bool last = number + 1 == batches.numberOfBatches();
  if (examples <= 0 || (last ? examples > each : examples != each))
    throw InvalidArgument(fmt::format("the batch has {}, but the iterator announced {}{}",
                                      plural(examples, "example"), each, last ? " at most" : ""));
}

}  // namespace muster
