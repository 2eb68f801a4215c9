#include "muster/core/data/detail/read_ahead.h"

#include <utility>

#include "muster/core/base/start_thread.h"
#include "muster/core/data/next_batch.h"
#include "muster/core/data/own_memory.h"

namespace muster::detail {

ReadAhead::ReadAhead(DataSetIterator& inner, std::size_t depth)
    : inner_(inner), requests_(1), used_(depth), full_(4 * depth + 1) {
  for (std::size_t i = 0; i < depth; ++i) used_.push(Batch{});
  thread_ = startThread("the prefetching iterator", [this] { run(); });
}

ReadAhead::~ReadAhead() {
  stopped_ = true;
  requests_.close();
  used_.close();
  full_.close();
}

void ReadAhead::request(std::optional<std::int64_t> epoch) {
  stopped_ = false;
  requests_.push(epoch);
}

std::int64_t ReadAhead::skip(std::int64_t batches) {
  const std::int64_t examples = inner_.skip(batches);
  readsToSkip_ = inner_.readsToSkip();
  return examples;
}

void ReadAhead::run() {
  while (const auto request = requests_.pop()) {
    Message closing;
    try {
      if (*request) inner_.reset(**request);
      closing.ended = !read();
    } catch (...) {
      closing.ended = true;
      closing.error = std::current_exception();
    }
    full_.push(std::move(closing));
  }
}

/// @return false at the end of the epoch; true if the caller has stopped the pass.
bool ReadAhead::read() {
  while (!stopped_) {
    if (!skipOthers()) return false;
    auto batch = used_.pop();
    if (!batch) return true;
    if (stopped_) {
      used_.push(std::move(*batch));
      return true;
    }
    if (!fill(*batch)) {
      used_.push(std::move(*batch));
      return false;
    }
    ++position_;
    full_.push({.batch = std::move(batch)});
  }
  return true;
}

/// Skips batches that the caller will not take. @return false at the end of the epoch.
bool ReadAhead::skipOthers() {
  Message skipped;
  const auto send = [&] {
    if (skipped.skipped > 0) full_.push(std::exchange(skipped, {}));
  };
  bool more = true;
  try {
    const BatchShare share = share_;
    while (more && !stopped_ && !share.has(position_)) {
      const std::int64_t examples = skip(1);
      more = examples > 0;
      if (examples != skipped.examples) send();
      if (!more) break;
      ++position_;
      ++skipped.skipped;
      skipped.examples = examples;
    }
  } catch (...) {
    send();
    throw;
  }
  send();
  return more;
}

/// inner.next; keeps the batch if it throws, because batches are recycled.
bool ReadAhead::fill(Batch& batch) {
  try {
    const bool any = nextBatch(inner_, batch);
    if (any) ownMemory(batch);
    return any;
  } catch (...) {
    used_.push(std::move(batch));
    throw;
  }
}

}  // namespace muster::detail
