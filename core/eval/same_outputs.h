#pragma once

namespace muster {

class DataSetIterator;
class Model;

/// Whether two models predict the same for all batches of an epoch, bit for bit, as one that was saved and
/// what was loaded from its file. @throws InvalidArgument for a model without `output`, or while a training
/// reads the data set.
bool sameOutputs(Model& one, Model& other, DataSetIterator& data);

}  // namespace muster
