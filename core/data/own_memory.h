#pragma once

#include "muster/core/data/batch.h"

namespace muster {

/// Copies the tensors of a batch that share their memory with others, or do not own it: for a batch that
/// waits while its iterator is called again. An iterator that hands out its own tensors and refills them
/// later would change it.
void ownMemory(Batch& batch);

}  // namespace muster
