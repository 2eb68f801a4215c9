#include "muster/core/data/prefetch.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "muster/core/base/owner_process.h"
#include "muster/core/data/detail/read_ahead.h"

namespace muster {

/// The caller's side: takes and skips the batches that a thread reads ahead.
///
/// Over N nodes, the caller skips N - 1 batches before each one that it takes. Once it has done so twice, the
/// thread skips the same ones, also in later epochs, so that it reads ahead the batches of this node alone.
class PrefetchingIterator::Reader {
 public:
  const OwnerProcess owner;

  Reader(DataSetIterator& inner, std::size_t depth) : thread_(inner, depth) {}

  void begin(std::int64_t epoch) {
    finish();
    epoch_ = epoch;
    error_ = nullptr;
    guess_.begin();
    goTo(0);
    request(epoch);
  }

  bool readsToSkip() const { return thread_.readsToSkip(); }
  std::int64_t skip(std::int64_t batches) {
    std::int64_t examples = 0;
    // Takes what is ready, and what the thread itself is about to skip.
    while (batches > 0 && (front_ || (state_ == State::Reading && receive(batches < thread_.share().period))))
      if (front_) examples += drop(batches);
    if (batches == 0) return examples;
    thread_.stop();
    while (batches > 0 && state_ == State::Reading)
      if (receive(true)) examples += drop(batches);
    if (batches > 0 && state_ == State::Idle) {
      examples += here([&] { return thread_.skip(batches); });
      goTo(taken_ + batches);
      request(std::nullopt);
    }
    thread_.resume();
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
      if (const auto share = guess_.note(taken_); share && epoch_) thread_.setShare(*share);
      ++taken_;
      return true;
    }
    if (error_) std::rethrow_exception(error_);
    return false;
  }

 private:
  enum class State {
    Idle,  // the thread waits for a request; its iterator may be used here
    Reading,
    Ended
  };

  void request(std::optional<std::int64_t> epoch) {
    state_ = State::Reading;
    thread_.request(epoch);
  }

  /// Receives the next message of the thread, which reads. @return whether it is now in front_.
  bool receive(bool waits) {
    auto message = thread_.receive(waits);
    if (!message) return false;
    if (!message->closing()) {
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
    thread_.recycle(std::move(*front_->batch));
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
    thread_.stop();
    for (;;) {
      if (front_ && front_->batch) recycle();
      front_.reset();
      if (state_ != State::Reading) return;
      receive(true);
    }
  }

  void goTo(std::int64_t position) {
    taken_ = position;
    thread_.setPosition(position);
  }

  /// The caller wants a batch that the thread has skipped. Forgets the share for the rest of the epoch.
  void rewind() {
    finish();
    thread_.setShare({});
    guess_.giveUp();
    error_ = nullptr;
    here([&] {
      thread_.inner().reset(*epoch_);
      return thread_.skip(taken_);
    });
    goTo(taken_);
    state_ = State::Idle;
  }

  /// Calls the thread's iterator on this thread. `next` throws its exception again.
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

  State state_ = State::Idle;
  std::optional<detail::ReadAhead::Message> front_;  // received, and not yet taken or skipped
  std::exception_ptr error_;                         // of the pass that has ended
  std::optional<std::int64_t> epoch_;                // begun by the last `reset`
  std::int64_t taken_ = 0;                           // batches that were taken or skipped since then
  detail::BatchShareGuess guess_;
  detail::ReadAhead thread_;
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
