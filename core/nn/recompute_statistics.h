#pragma once

#include "muster/core/data/data_set_iterator.h"
#include "muster/core/nn/model.h"

namespace muster {

/// Replaces the running statistics (BatchNorm's means and variances) by those of a data set under the
/// model's parameters as they are: each batch runs forward as in training (dropout acts), and its
/// statistics count with its number of examples. A mean's variance includes that between the batches. Use
/// it for parameters that were not trained with these statistics, such as an average of models.
///
/// Parameters, the updater's state and the counters do not change. A model without such statistics is left as
/// it is, and the data are not read. The iterator is reset to epoch 0.
/// @param model  with one input and one output, if it is a Network: see ForwardPass.
/// @throws InvalidArgument if there are no batches, or a training reads the iterator; what Model::forward and
///         the iterator throw; the statistics are then as before.
/// Source: Izmailov et al. 2018 (SWA), section 3.2.
void recomputeStatistics(Model& model, DataSetIterator& data);

}  // namespace muster
