#pragma once

#include "muster/parallel/training/fit_run.h"

namespace muster {

/// Reads the epochs of one `fit()` from the iterator, stamps each batch, and hands batch b to worker b mod W,
/// or to the worker that the strategy's arrivals choose; batches of workers on other nodes are skipped. Runs
/// on a thread of its own; reads ahead, over the ends of epochs too, as far as free batches allow. If workers
/// read their own batches (FitRun::numbered), it only resets the iterator before each epoch, and gives each
/// worker the stamp of its first batch. If a training is resumed within its first epoch, the i-th untrained
/// batch goes to worker i mod W.
///
/// Ends after the last epoch, on a stop (each worker then gets the end of its epoch), or when the run has
/// failed. A failure of the iterator becomes the run's failure when a worker needs what could not be read, so
/// whole rounds before it are merged, and an epoch before it ends, however far ahead the reader was. After a
/// stop no worker needs it, and it is dropped.
/// @param first  see WatchedIterator.
void dispatch(FitRun& run, DataSetIterator& data, std::int64_t epochs, Batch* first, Activity& activity);

}  // namespace muster
