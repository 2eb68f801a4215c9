#pragma once

#include <cstdint>
#include <string>

#include "muster/parallel/parallel_wrapper.h"

namespace muster {

/// What the nodes of a training must have in common.
struct Agreement {
  const ParallelOptions& options;
  Model& model;
  const DataSetIterator& data;
  std::int64_t epochs = 0;
  std::int64_t nextBatch = 0;
  const Batch* first = nullptr;  ///< the first batch, if it was read
};

/// Compares `own` and the model's state with the other nodes. Waits for them.
/// @throws InvalidArgument on all nodes: it names two that differ and in what; if their places or models
///         differ, also the files that they have loaded. NodeFailure.
void requireAgreement(NodeLink& link, const Agreement& own);

/// The part of `own` that does not change during the training, as text: a line or more for each item.
std::string inWords(const Agreement& own);

}  // namespace muster
