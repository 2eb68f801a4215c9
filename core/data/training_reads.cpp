#include "muster/core/data/training_reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "muster/core/base/error.h"
#include "muster/core/base/mutex.h"

namespace muster {
namespace {

/// Whether `a` or an iterator that it reads is `b` or one that `b` reads.
bool shareOne(const DataSetIterator* a, const DataSetIterator* b) {
  for (; a != nullptr; a = a->inner())
    for (const DataSetIterator* other = b; other != nullptr; other = other->inner())
      if (a == other) return true;
  return false;
}

struct Read {
  Mutex mutex;
  std::set<const DataSetIterator*> iterators MUSTER_GUARDED_BY(mutex);

  /// The one of them that reads an iterator that `data` reads, too; null if there is none.
  const DataSetIterator* sharing(const DataSetIterator& data) const MUSTER_REQUIRES(mutex) {
    const auto found = std::ranges::find_if(iterators, [&](const auto* one) { return shareOne(one, &data); });
    return found == iterators.end() ? nullptr : *found;
  }
};

Read& read() {
  static Read all;
  return all;
}

}  // namespace

TrainingReads::TrainingReads(const DataSetIterator& data) : data_(data) {
  Read& all = read();
  const Lock lock(all.mutex);
  if (const auto* const other = all.sharing(data))
    throw InvalidArgument(
        fmt::format("fit: another training reads this {}, and both would miss batches; pass another one",
                    other == &data ? "iterator" : "iterator, or one that it reads"));
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
  if (const auto* const other = all.sharing(data))
    throw InvalidArgument(
        fmt::format("{}: the training reads this {} and would miss batches; pass another one", what,
                    other == &data ? "iterator" : "iterator, or one that it reads,"));
}

}  // namespace muster
