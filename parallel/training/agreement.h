#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "muster/core/data/data_set_iterator.h"
#include "muster/core/device/context.h"
#include "muster/core/nn/model.h"
#include "muster/parallel/strategies/any_strategy.h"

namespace muster {

class NodeLink;

/// What the nodes of a training must have in common.
struct Agreement {
  Model& model;
  const DataSetIterator& data;
  const AnyStrategy& strategy;
  const Listeners& listeners;  ///< those that are called on all nodes are compared
  int workers = 1;             ///< of a node
  int threads = 1;             ///< of a worker
  bool onGpus = false;
  std::optional<MathMode> mathMode;  ///< nothing: the devices' default
  std::int64_t epochs = 0;
  std::string version = {};  ///< of muster; "": this library's
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
