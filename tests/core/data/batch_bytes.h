#pragma once

#include "muster/core/data/data_set_iterator.h"
#include "tests/support/standard.h"

namespace muster::test {

/// The bytes of a batch's features, labels and masks, each after its shape and type.
inline std::string bytesOf(const Batch& batch) {
  std::string text;
  for (const auto* tensors : {&batch.features, &batch.labels, &batch.masks})
    for (const auto& [name, value, source] : *tensors)
      text.append(value.toString()).append(static_cast<const char*>(value.raw()), value.bytes());
  return text;
}

/// The bytes of the epoch's remaining batches.
inline std::vector<std::string> bytesOfRest(DataSetIterator& data) {
  std::vector<std::string> all;
  for (Batch batch; data.next(batch);) all.push_back(bytesOf(batch));
  return all;
}

}  // namespace muster::test
