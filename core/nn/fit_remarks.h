#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/core/nn/model.h"

namespace muster {

/// What a training does that its numbers say beforehand and that is hardly meant, a sentence each: workers
/// that have nothing to train, and, for more than one epoch, a learning rate whose schedule (over iterations)
/// does not fit the training.
/// @param epochs  to train.  @param batches  of an epoch.  @param workers  over all nodes.
std::vector<std::string> fitRemarks(const Model& model, std::int64_t epochs, std::int64_t batches,
                                    std::int64_t workers);

}  // namespace muster
