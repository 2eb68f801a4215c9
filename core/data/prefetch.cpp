#include "muster/core/data/prefetch.h"

#include <atomic>
#include <exception>
#include <thread>
#include <utility>

#include "muster/core/base/queue.h"
#include "muster/core/base/start_thread.h"
#include "muster/core/data/next_batch.h"

namespace muster {

/// The reading thread and its three queues.
///
/// A pass (one epoch) begins with a request and ends with exactly one closing message: the data ended, the
/// iterator threw, or the caller cancelled. There are `depth` batches besides the caller's, and full_ has
/// room for all of them and a closing message. So the reader waits for used batches only, and the caller,
/// which returns a batch for each that it takes, can always drain a pass.
class PrefetchingIterator::Reader {
 public:
  Reader(DataSetIterator& inner, std::size_t depth)
      : inner_(inner), requests_(1), used_(depth), full_(depth + 1) {
    for (std::size_t i = 0; i < depth; ++i) used_.push(Batch{});
    thread_ = startThread("the prefetching iterator", [this] { run(); });
  }

  ~Reader() {
    abandoned_ = true;
    requests_.close();
    used_.close();
    full_.close();
  }

  void begin(std::optional<std::int64_t> epoch) {
    finish();
    epoch_ = epoch;
    taken_ = 0;
    request(epoch);
  }

  /// Whether `skip` is available: it must know where reading began.
  bool skips() const { return fresh_ || epoch_; }
  std::int64_t skip(std::int64_t batches) {
    finish();  // the thread waits for a request from now on, so inner_ may be used here
    if (epoch_) {
      inner_.reset(*epoch_);
      inner_.skip(taken_);
    }
    const std::int64_t examples = inner_.skip(batches);
    taken_ += batches;
    request(std::nullopt);
    return examples;
  }

  bool next(Batch& batch) {
    if (fresh_) begin(std::nullopt);
    if (open_)
      if (auto message = take()) {
        std::swap(message->features, batch.features);
        std::swap(message->labels, batch.labels);
        std::swap(message->masks, batch.masks);
        used_.push(std::move(*message));
        ++taken_;
        return true;
      }
    if (error_) std::rethrow_exception(error_);
    return false;
  }

 private:
  struct Message {
    std::optional<Batch> batch;  // empty in a closing message
    std::exception_ptr error;
  };

  void request(std::optional<std::int64_t> epoch) {
    abandoned_ = false;
    error_ = nullptr;
    open_ = true;
    fresh_ = false;
    requests_.push(epoch);
  }

  /// The next batch of this pass; empty at its end.
  std::optional<Batch> take() {
    auto message = full_.pop();
    if (message->batch) return std::move(message->batch);
    open_ = false;
    error_ = message->error;
    return std::nullopt;
  }

  void finish() {
    abandoned_ = true;
    while (open_)
      if (auto batch = take()) used_.push(std::move(*batch));
  }

  void run() {
    while (const auto request = requests_.pop()) {
      Message closing;
      try {
        read(*request);
      } catch (...) {
        closing.error = std::current_exception();
      }
      full_.push(std::move(closing));
    }
  }

  void read(std::optional<std::int64_t> epoch) {
    if (epoch) inner_.reset(*epoch);
    while (!abandoned_) {
      auto batch = used_.pop();
      if (!batch || abandoned_ || !fill(*batch)) {
        if (batch) used_.push(std::move(*batch));
        return;
      }
      full_.push({std::move(batch), nullptr});
    }
  }

  /// inner.next; keeps the batch if it throws, because batches are recycled.
  bool fill(Batch& batch) {
    try {
      return nextBatch(inner_, batch);
    } catch (...) {
      used_.push(std::move(batch));
      throw;
    }
  }

  DataSetIterator& inner_;  // the reader's thread only
  BoundedQueue<std::optional<std::int64_t>>
      requests_;              // epochs to read; empty: continue from inner_'s position
  BoundedQueue<Batch> used_;  // to refill
  BoundedQueue<Message> full_;
  std::atomic<bool> abandoned_{false};  // the pass in progress was cancelled
  bool fresh_ = true;                   // nothing was requested yet; caller's thread only
  bool open_ = false;                   // a closing message will still come; caller's thread only
  std::exception_ptr error_;            // of the last finished pass; caller's thread only
  std::optional<std::int64_t> epoch_;   // begun by the last `reset`; caller's thread only
  std::int64_t taken_ = 0;              // batches since then; caller's thread only
  std::jthread thread_;                 // last member: joined before the queues are destroyed
};

PrefetchingIterator::PrefetchingIterator(DataSetIterator& inner, int depth)
    : inner_(inner), examples_(inner.examples()), batchSize_(inner.batchSize()) {
  require(depth >= 0, "prefetch: the depth cannot be negative, got {}", depth);
  if (depth > 0) reader_ = std::make_unique<Reader>(inner, static_cast<std::size_t>(depth));
}

PrefetchingIterator::~PrefetchingIterator() = default;

void PrefetchingIterator::reset(std::int64_t epoch) {
  reader_ ? reader_->begin(epoch) : inner_.reset(epoch);
}

std::int64_t PrefetchingIterator::skip(std::int64_t batches) {
  if (!reader_) return inner_.skip(batches);
  return reader_->skips() ? reader_->skip(batches) : DataSetIterator::skip(batches);
}

bool PrefetchingIterator::next(Batch& batch) {
  return reader_ ? reader_->next(batch) : inner_.next(batch);
}

}  // namespace muster
