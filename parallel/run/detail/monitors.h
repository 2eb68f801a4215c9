#pragma once

#include <string>
#include <string_view>

#include "muster/core/listeners/monitored.h"
#include "muster/core/nn/network.h"
#include "muster/datasets/source/load_data.h"
#include "muster/parallel/run/run_file.h"

namespace muster::detail {

/// The validation data, or if there are none the test data: to look at, not to choose by.
/// @param who  the field that needs them, for errors.  @throws InvalidArgument if there are neither.
DataSetIterator& watched(LoadedData& data, std::string_view who);

/// What a listener chooses by. @throws InvalidArgument if it needs validation data, and there are none.
Monitored monitoredOf(const RunMonitor& m, LoadedData& data, std::string_view who);

/// Checks what the listeners would choose by. @throws InvalidArgument for a best file, early stopping or
/// `reduceOnPlateau` by examples that the run does not hold out, or by a score that the network does not
/// have.
void checkMonitors(const RunFile& run, LoadedData& data, Network& network);

/// The loss that validation data have, to follow "chooses by", if the training's loss weights the classes
/// differently; "" otherwise.
std::string unweightedLoss(const LoadedData& data);

/// A sentence that listeners look at the loss without the weights of the classes; "" if they do not.
std::string weightsRemark(const RunListeners& listeners, const LoadedData& data);

}  // namespace muster::detail
