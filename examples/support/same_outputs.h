#pragma once

#include "muster/core/data/data_set_iterator.h"
#include "muster/core/nn/model.h"

namespace example {

/// Whether two models predict the same for all batches of an epoch, bit for bit: one that was saved, and what
/// was loaded from its file.
bool sameOutputs(muster::Model& one, muster::Model& other, muster::DataSetIterator& data);

}  // namespace example
