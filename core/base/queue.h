#pragma once

#include <concurrentqueue.h>
#include <lightweightsemaphore.h>

#include <atomic>
#include <cstddef>
#include <optional>
#include <thread>
#include <utility>

#include "muster/core/base/error.h"

namespace muster {

/// A bounded, closable queue for any number of producers and consumers.
///
/// `push` waits while the queue is full and returns false once it is closed; `pop` waits while it is empty
/// and returns nothing once it is closed and drained. What was pushed with `true` is always popped by
/// somebody who keeps popping. Items of one producer keep their order. All members but construction and
/// destruction are thread-safe.
///
/// moodycamel::ConcurrentQueue carries the items; two counting semaphores bound it.
template <typename T>
class BoundedQueue {
 public:
  /// @throws InvalidArgument if `capacity` is 0.
  explicit BoundedQueue(std::size_t capacity)
      : items_(capacity), slots_(static_cast<ssize_t>(checked(capacity))), capacity_(capacity) {}
  BoundedQueue(const BoundedQueue&) = delete;
  BoundedQueue& operator=(const BoundedQueue&) = delete;

  std::size_t capacity() const { return capacity_; }

  /// Waits for room. @return false, with `item` destroyed, once the queue is closed.
  bool push(T item) {
    while (!slots_.wait()) {
    }
    pushing_.fetch_add(1);
    if (closed_.load()) {
      pushing_.fetch_sub(1);
      slots_.signal();  // pass the wake-up on to the next producer
      return false;
    }
    items_.enqueue(std::move(item));
    pushing_.fetch_sub(1);
    filled_.signal();
    return true;
  }

  /// Waits for an item. @return nothing once the queue is closed and drained.
  std::optional<T> pop() {
    while (!filled_.wait()) {
    }
    T item{};
    for (;;) {
      if (items_.try_dequeue(item)) {
        slots_.signal();
        return item;
      }
      // Woken without an item: either the queue was closed, or the item is still on its way in.
      if (closed_.load() && pushing_.load() == 0) {
        if (items_.try_dequeue(item)) {
          slots_.signal();
          filled_.signal();
          return item;
        }
        filled_.signal();  // pass the wake-up on to the next consumer
        return std::nullopt;
      }
      std::this_thread::yield();
    }
  }

  /// As `pop`, but returns nothing at once where there is no item.
  std::optional<T> tryPop() {
    if (!filled_.tryWait()) return std::nullopt;
    T item{};
    if (items_.try_dequeue(item)) {
      slots_.signal();
      return item;
    }
    filled_.signal();
    return std::nullopt;
  }

  /// Wakes everyone who waits. Items already in the queue can still be popped. May be called again.
  void close() {
    if (closed_.exchange(true)) return;
    slots_.signal();
    filled_.signal();
  }

  bool closed() const { return closed_.load(); }

 private:
  static std::size_t checked(std::size_t capacity) {
    require(capacity > 0, "queue: the capacity must be at least 1");
    return capacity;
  }

  moodycamel::ConcurrentQueue<T> items_;
  moodycamel::LightweightSemaphore slots_;   // free places, plus one token that goes round once closed
  moodycamel::LightweightSemaphore filled_;  // items, plus one token that goes round once closed
  std::atomic<int> pushing_{0};  // producers between their check of closed_ and their item's arrival
  std::atomic<bool> closed_{false};
  const std::size_t capacity_;
};

}  // namespace muster
