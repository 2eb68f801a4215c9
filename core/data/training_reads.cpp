#include "muster/core/data/training_reads.h"

#include <set>

#include "muster/core/base/error.h"
#include "muster/core/base/mutex.h"

namespace muster {
namespace {

struct Read {
  Mutex mutex;
  std::multiset<const DataSetIterator*> iterators MUSTER_GUARDED_BY(mutex);
};

Read& read() {
  static Read all;
  return all;
}

}  // namespace

TrainingReads::TrainingReads(const DataSetIterator& data) : data_(data) {
  Read& all = read();
  const Lock lock(all.mutex);
  all.iterators.insert(&data);
}

TrainingReads::~TrainingReads() {
  Read& all = read();
  const Lock lock(all.mutex);
  all.iterators.erase(all.iterators.find(&data_));
}

void requireNotRead(const DataSetIterator& data) {
  Read& all = read();
  const Lock lock(all.mutex);
  require(!all.iterators.contains(&data),
          "evaluate: the training reads this iterator and would miss batches; evaluate another one");
}

}  // namespace muster
