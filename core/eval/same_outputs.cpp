#include "muster/core/eval/same_outputs.h"

#include <cstring>

#include "muster/core/data/training_reads.h"
#include "muster/core/nn/model.h"

namespace muster {

bool sameOutputs(Model& one, Model& other, DataSetIterator& data) {
  requireNotRead(data, "same outputs");
  Batch batch;
  Tensor a, b;
  for (data.reset(0); data.next(batch);) {
    one.output(batch, a);
    other.output(batch, b);
    if (a.shape() != b.shape() || std::memcmp(a.raw(), b.raw(), a.bytes()) != 0) return false;
  }
  return true;
}

}  // namespace muster
