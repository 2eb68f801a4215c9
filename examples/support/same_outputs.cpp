#include "examples/support/same_outputs.h"

#include <cstring>

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

}  // namespace example
