#include "muster/core/data/training_reads.h"

#include <set>

#include "muster/core/base/error.h"
#include "muster/core/base/mutex.h"

namespace muster {
namespace {

struct Read {
  Mutex mutex;
  std::set<const DataSetIterator*> iterators MUSTER_GUARDED_BY(mutex);
};

/// Whether `a` or an iterator that it reads is `b` or one that `b` reads.
bool shareOne(const DataSetIterator* a, const DataSetIterator* b) {
  for (; a != nullptr; a = a->inner())
    for (const DataSetIterator* other = b; other != nullptr; other = other->inner())
      if (a == other) return true;
  return false;
}

Read& read() {
  static Read all;
  return all;
}

}  // namespace

TrainingReads::TrainingReads(const DataSetIterator& data) : data_(data) {
  Read& all = read();
  const Lock lock(all.mutex);
  for (const DataSetIterator* const read : all.iterators)
    require(!shareOne(read, &data),
            "fit: another training reads this {}, and both would miss batches; pass another one",
            read == &data ? "iterator" : "iterator, or one that it reads");
  all.iterators.insert(&data);
}

TrainingReads::~TrainingReads() {
  Read& all = read();
  const Lock lock(all.mutex);
  all.iterators.erase(all.iterators.find(&data_));
}

void requireNotRead(const DataSetIterator& data, std::string_view what) {
  Read& all = read();
  const Lock lock(all.mutex);
  for (const DataSetIterator* const read : all.iterators)
    require(!shareOne(read, &data), "{}: the training reads this {} and would miss batches; pass another one",
            what, read == &data ? "iterator" : "iterator, or one that it reads,");
}

}  // namespace muster
