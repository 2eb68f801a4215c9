#pragma once

#include <cstdint>
#include <string>

#include "muster/core/data/data_set_iterator.h"
#include "muster/core/nn/model.h"

namespace muster {

class NodeLink;

/// What the nodes of a training must have in common.
struct Agreement {
  Model& model;
  const DataSetIterator& data;
  std::string strategy;
  int workers = 1;  ///< of a node
  int threads = 1;  ///< of a worker
  std::int64_t epochs = 0;
  std::int64_t nextBatch = 0;
  std::int64_t listeners = 0;    ///< how many are called on all nodes
  const Batch* first = nullptr;  ///< the first batch, if it was read
};

/// Compares `own`, the version of muster and the model's state with the other nodes. Waits for them.
/// @throws InvalidArgument on all nodes, naming two that differ and in what; NodeFailure.
void requireAgreement(NodeLink& link, const Agreement& own);

/// The part of `own` that does not change during the training, as text: a line for each item.
std::string inWords(const Agreement& own);

}  // namespace muster
