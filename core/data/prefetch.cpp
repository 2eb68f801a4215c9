#include "muster/core/data/prefetch.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "muster/core/base/owner_process.h"
#include "muster/core/base/queue.h"
#include "muster/core/base/start_thread.h"
#include "muster/core/data/next_batch.h"
#include "muster/core/data/own_memory.h"

namespace muster {

/// The reading thread and its three queues.
///
/// A pass begins with a request and ends with exactly one closing message: the data ended, the iterator
/// threw, or the caller stopped the thread. There are `depth` batches besides the caller's. The caller
/// returns a batch for each that it takes, so it can always drain a pass.
///
/// Over N nodes, the caller skips N - 1 batches before each one that it takes. Once it has done so twice, the
/// thread skips the same ones, also in later epochs, so that it reads ahead the batches of this node alone.
class PrefetchingIterator::Reader {
 public:
  const OwnerProcess owner;

  Reader(DataSetIterator& inner, std::size_t depth)
      : inner_(inner), requests_(1), used_(depth), full_(4 * depth + 1) {
    for (std::size_t i = 0; i < depth; ++i) used_.push(Batch{});
    thread_ = startThread("the prefetching iterator", [this] { run(); });
  }

  ~Reader() {
    abandoned_ = true;
    requests_.close();
    used_.close();
    full_.close();
  }

  void begin(std::int64_t epoch) {
    finish();
    epoch_ = epoch;
    error_ = nullptr;
    previous_.reset();
    learns_ = true;
    goTo(0);
    request(epoch);
  }

  bool readsToSkip() const { return readsToSkip_; }
  std::int64_t skip(std::int64_t batches) {
    std::int64_t examples = 0;
    // Takes what is ready, and what the thread itself is about to skip.
    while (batches > 0 && (front_ || (state_ == State::Reading && receive(batches < share_.load().period))))
      if (front_) examples += drop(batches);
    if (batches == 0) return examples;
    abandoned_ = true;
    while (batches > 0 && state_ == State::Reading)
      if (receive(true)) examples += drop(batches);
    if (batches > 0 && state_ == State::Idle) {
      examples += here([&] { return skipInner(batches); });
      goTo(taken_ + batches);
      request(std::nullopt);
    }
    abandoned_ = false;
    if (batches > 0 && error_) std::rethrow_exception(error_);
    return examples;
  }

  bool next(Batch& batch) {
    if (fetch() && !front_->batch) rewind();
    if (fetch()) {
      std::swap(front_->batch->features, batch.features);
      std::swap(front_->batch->labels, batch.labels);
      std::swap(front_->batch->masks, batch.masks);
      std::swap(front_->batch->parts, batch.parts);
      recycle();
      noteShare();
      ++taken_;
      return true;
    }
    if (error_) std::rethrow_exception(error_);
    return false;
  }

 private:
  struct Message {
    std::optional<Batch> batch;              // a batch that was read
    std::int64_t skipped = 0, examples = 0;  // or batches that were skipped, of as many examples each
    bool ended = false;                      // in a closing message: at the end of the data, or by `error`
    std::exception_ptr error = nullptr;
  };
  /// The caller takes batch b of the epoch if b mod `period` is `phase`.
  struct Share {
    std::int32_t period = 1, phase = 0;
  };
  enum class State {
    Idle,  // the thread waits for a request; inner_ may be used here
    Reading,
    Ended
  };

  void request(std::optional<std::int64_t> epoch) {
    abandoned_ = false;
    state_ = State::Reading;
    requests_.push(epoch);
  }

  /// Receives the next message of the thread, which reads. @return whether it is now in front_.
  bool receive(bool waits) {
    auto message = waits ? full_.pop() : full_.tryPop();
    if (!message) return false;
    if (message->batch || message->skipped > 0) {
      front_ = std::move(message);
      return true;
    }
    state_ = message->ended ? State::Ended : State::Idle;
    error_ = message->error;
    return false;
  }

  /// @return false at the end of the pass.
  bool fetch() {
    while (!front_ && state_ != State::Ended) {
      if (state_ == State::Idle) request(std::nullopt);
      receive(true);
    }
    return front_.has_value();
  }

  void recycle() {
    used_.push(std::move(*front_->batch));
    front_.reset();
  }

  /// Counts up to `batches` of what is in front_ as skipped. @return their examples.
  std::int64_t drop(std::int64_t& batches) {
    std::int64_t count = 1, examples = 0;
    if (front_->batch) {
      examples = front_->batch->examples();
      recycle();
    } else {
      count = std::min(batches, front_->skipped);
      examples = count * front_->examples;
      front_->skipped -= count;
      if (front_->skipped == 0) front_.reset();
    }
    taken_ += count;
    batches -= count;
    return examples;
  }

  void finish() {
    abandoned_ = true;
    for (;;) {
      if (front_ && front_->batch) recycle();
      front_.reset();
      if (state_ != State::Reading) return;
      receive(true);
    }
  }

  /// Used with inner_.
  std::int64_t skipInner(std::int64_t batches) {
    const std::int64_t examples = inner_.skip(batches);
    readsToSkip_ = inner_.readsToSkip();
    return examples;
  }

  void goTo(std::int64_t position) { taken_ = position_ = position; }

  /// Learns from two equal distances between batches that the caller takes.
  void noteShare() {
    const std::int64_t distance = previous_ ? taken_ - *previous_ : 0;
    if (learns_ && epoch_ && distance > 1 && distance == distance_ && distance <= 1 << 20) {
      const auto period = static_cast<std::int32_t>(distance);
      share_ = Share{period, static_cast<std::int32_t>(taken_ % distance)};
    }
    distance_ = distance;
    previous_ = taken_;
  }

  /// The caller wants a batch that the thread has skipped. Forgets the share for the rest of the epoch.
  void rewind() {
    finish();
    share_ = Share{};
    learns_ = false;
    error_ = nullptr;
    here([&] {
      inner_.reset(*epoch_);
      return skipInner(taken_);
    });
    goTo(taken_);
    state_ = State::Idle;
  }

  /// Calls the inner iterator on this thread. `next` throws its exception again.
  template <typename F>
  std::int64_t here(F call) {
    try {
      return call();
    } catch (...) {
      state_ = State::Ended;
      error_ = std::current_exception();
      throw;
    }
  }

  void run() {
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

  /// @return false at the end of the epoch; true if the caller has stopped the thread.
  bool read() {
    while (!abandoned_) {
      if (!skipOthers()) return false;
      auto batch = used_.pop();
      if (!batch) return true;
      if (abandoned_) {
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
  bool skipOthers() {
    Message skipped;
    const auto send = [&] {
      if (skipped.skipped > 0) full_.push(std::exchange(skipped, {}));
    };
    bool more = true;
    try {
      const Share share = share_;
      while (more && !abandoned_ && position_ % share.period != share.phase) {
        const std::int64_t examples = skipInner(1);
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
  bool fill(Batch& batch) {
    try {
      const bool any = nextBatch(inner_, batch);
      if (any) ownMemory(batch);
      return any;
    } catch (...) {
      used_.push(std::move(batch));
      throw;
    }
  }

  DataSetIterator& inner_;  // the thread's, unless the state is Idle or Ended
  BoundedQueue<std::optional<std::int64_t>>
      requests_;              // epochs to read; empty: continue from inner_'s position
  BoundedQueue<Batch> used_;  // to refill
  BoundedQueue<Message> full_;
  std::atomic<bool> abandoned_{false};  // the thread shall stop reading
  std::atomic<Share> share_{Share{}};
  std::atomic<bool> readsToSkip_{false};
  std::int64_t position_ = 0;  // of inner_ in the epoch; used with inner_
  // The caller's thread only:
  State state_ = State::Idle;
  std::optional<Message> front_;          // received, and not yet taken or skipped
  std::exception_ptr error_;              // of the pass that has ended
  std::optional<std::int64_t> epoch_;     // begun by the last `reset`
  std::int64_t taken_ = 0;                // batches that were taken or skipped since then
  std::optional<std::int64_t> previous_;  // the last batch that `next` gave
  std::int64_t distance_ = 0;             // between it and the one before
  bool learns_ = true;                    // not after a wrong guess in this epoch
  std::jthread thread_;                   // last member: joined before the queues are destroyed
};

PrefetchingIterator::PrefetchingIterator(DataSetIterator& inner, int depth)
    : inner_(inner), examples_(inner.examples()), batchSize_(inner.batchSize()) {
  require(depth >= 0, "prefetch: the depth cannot be negative, got {}", depth);
  if (depth > 0) reader_ = std::make_unique<Reader>(inner, static_cast<std::size_t>(depth));
}

PrefetchingIterator::~PrefetchingIterator() {
  abandonInChild(reader_);
}

void PrefetchingIterator::reset(std::int64_t epoch) {
  reader_ ? usable(reader_, "prefetch").begin(epoch) : inner_.reset(epoch);
}

std::int64_t PrefetchingIterator::skip(std::int64_t batches) {
  return reader_ ? usable(reader_, "prefetch").skip(batches) : inner_.skip(batches);
}

bool PrefetchingIterator::readsToSkip() const {
  return reader_ ? reader_->readsToSkip() : inner_.readsToSkip();
}

bool PrefetchingIterator::next(Batch& batch) {
  return reader_ ? usable(reader_, "prefetch").next(batch) : inner_.next(batch);
}

}  // namespace muster
