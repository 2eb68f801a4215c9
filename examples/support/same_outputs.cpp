#include "examples/support/same_outputs.h"

#include <cstring>

#include "muster/core/base/error.h"

namespace example {

bool sameOutputs(muster::Model& one, muster::Model& other, muster::DataSetIterator& data) {
  muster::Batch batch;
  muster::Tensor a, b;
  for (data.reset(0); data.next(batch);) {
    one.output(batch, a);
    other.output(batch, b);
    if (a.shape() != b.shape() || std::memcmp(a.raw(), b.raw(), a.bytes()) != 0) return false;
  }
  return true;
}

std::string checkSaved(muster::Network& network, const std::filesystem::path& path,
                       muster::DataSetIterator& data) {
  if (!sameOutputs(network, *muster::Network::load(path), data))
    throw muster::FileError(path, "was saved, but what was loaded from it predicts something else");
  return "loaded again, it gives the same outputs, bit for bit";
}

std::string checkSaved(muster::Network& network, const std::filesystem::path& path, const DataSets& data,
                       std::int64_t batch) {
  muster::ImageSetIterator first(data.test->set(), batch, std::nullopt, batch);
  return checkSaved(network, path, first);
}

}  // namespace example
