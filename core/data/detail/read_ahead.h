#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <optional>
#include <thread>

#include "muster/core/base/queue.h"
#include "muster/core/data/data_set_iterator.h"
#include "muster/core/data/detail/batch_share.h"

namespace muster::detail {

/// A thread that reads batches of an iterator, in passes, for one other thread.
///
/// A pass begins with a request and ends with exactly one closing message: the data ended, the iterator
/// threw, or the caller stopped it. There are `depth` batches besides the caller's. The caller recycles a
/// batch for each that it receives, so it can always drain a pass. Between two passes the caller may use the
/// iterator.
class ReadAhead {
 public:
  struct Message {
    std::optional<Batch> batch;              ///< a batch that was read
    std::int64_t skipped = 0, examples = 0;  ///< or batches that were skipped, of as many examples each
    bool ended = false;                      ///< in a closing message: at the end of the data, or by `error`
    std::exception_ptr error = nullptr;

    bool closing() const { return !batch && skipped == 0; }
  };

  /// @param inner  must outlive it.
  ReadAhead(DataSetIterator& inner, std::size_t depth);
  /// Waits for a call of `inner` in progress.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// Begins a pass. @param epoch  to reset `inner` to; empty: continues where `inner` is.
  void request(std::optional<std::int64_t> epoch);
  /// Asks the thread to end the pass soon.
  void stop() { stopped_ = true; }
  /// Withdraws that, if the thread has not ended the pass yet.
  void resume() { stopped_ = false; }
  /// The next message of the pass. @param waits  if not, empty while there is none.
  std::optional<Message> receive(bool waits) { return waits ? full_.pop() : full_.tryPop(); }
  /// Gives a batch back to be refilled.
  void recycle(Batch batch) { used_.push(std::move(batch)); }

  /// The batches that the thread reads; it skips the others. May change during a pass.
  void setShare(BatchShare share) { share_ = share; }
  BatchShare share() const { return share_; }
  bool readsToSkip() const { return readsToSkip_; }

  // Between two passes only.

  /// The number of the batch that `inner` gives next.
  void setPosition(std::int64_t batch) { position_ = batch; }
  DataSetIterator& inner() { return inner_; }
  /// Skips batches of `inner`. @return their examples.
  std::int64_t skip(std::int64_t batches);

 private:
  void run();
  bool read();
  bool skipOthers();
  bool fill(Batch& batch);

  DataSetIterator& inner_;                              // the thread's during a pass
  BoundedQueue<std::optional<std::int64_t>> requests_;  // epochs
  BoundedQueue<Batch> used_;                            // to refill
  BoundedQueue<Message> full_;
  std::atomic<bool> stopped_{false};
  std::atomic<BatchShare> share_{BatchShare{}};
  std::atomic<bool> readsToSkip_{false};
  std::int64_t position_ = 0;  // of inner_ in the epoch; used with it
  std::jthread thread_;        // last member: joined before the queues are destroyed
};

}  // namespace muster::detail
