#pragma once

#include <concurrentqueue.h>
#include <lightweightsemaphore.h>

#include <atomic>
#include <cstddef>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/mutex.h"

namespace muster {

/// A bounded, closable queue for any number of producers and consumers.
///
/// `push` waits while the queue is full and returns false once it is closed; `pop` waits while it is empty
/// and returns nothing once it is closed and drained. Every item for which `push` returned true is popped by
/// a consumer that keeps popping. Items keep their order. All members but construction and destruction are
/// thread-safe. Only construction allocates, so that a batch in circulation is never lost for lack of memory.
///
/// moodycamel::ConcurrentQueue carries the items; two counting semaphores bound it. All producers push
/// through one token of it, under a mutex: without a token the queue allocates when a thread first pushes.
template <typename T>
class BoundedQueue {
 public:
  /// @param looks  how often `pop` looks for an item before the thread sleeps.
  /// @throws InvalidArgument if `capacity` is 0; std::bad_alloc.
  explicit BoundedQueue(std::size_t capacity, int looks = 10'000)
      : items_(checked(capacity) + Items::BLOCK_SIZE),
        producer_(items_),
        slots_(static_cast<ssize_t>(capacity)),
        filled_(0, looks),
        capacity_(capacity) {
    reserve();
  }
  BoundedQueue(const BoundedQueue&) = delete;
  BoundedQueue& operator=(const BoundedQueue&) = delete;

  /// Waits for room. @return false, with `item` destroyed, once the queue is closed.
  bool push(T item) {
    while (!slots_.wait()) {
    }
    {
      const Lock lock(producerMutex_);
      if (!closed_.load()) {
        // It fails only while a consumer that has claimed an item has not yet left the item's block.
        while (!items_.try_enqueue(producer_, std::move(item))) std::this_thread::yield();
        filled_.signal();
        return true;
      }
    }
    slots_.signal();  // wakes the next producer
    return false;
  }

  /// Waits for an item. @return nothing once the queue is closed and drained.
  std::optional<T> pop() {
    while (!filled_.wait()) {
    }
    T item{};
    for (;;) {
      const bool closed = closed_.load();  // before it looks: nothing is pushed after that
      if (items_.try_dequeue_from_producer(producer_, item)) {
        slots_.signal();
        return item;
      }
      if (closed) {
        filled_.signal();  // wakes the next consumer
        return std::nullopt;
      }
      std::this_thread::yield();
    }
  }

  /// As `pop`, but returns nothing at once if there is no item.
  std::optional<T> tryPop() {
    if (!filled_.tryWait()) return std::nullopt;
    T item{};
    if (items_.try_dequeue_from_producer(producer_, item)) {
      slots_.signal();
      return item;
    }
    filled_.signal();
    return std::nullopt;
  }

  /// Wakes all waiting threads. Items already in the queue can still be popped. May be called again.
  void close() {
    {
      const Lock lock(producerMutex_);
      if (closed_.exchange(true)) return;
    }
    slots_.signal();
    filled_.signal();
  }

  bool closed() const { return closed_.load(); }

 private:
  /// Its memory comes from operator new, where tests can count it and let it fail.
  struct Traits : moodycamel::ConcurrentQueueDefaultTraits {
    static void* malloc(std::size_t bytes) { return ::operator new(bytes, std::nothrow); }
    static void free(void* memory) { ::operator delete(memory); }
  };
  using Items = moodycamel::ConcurrentQueue<T, Traits>;

  static std::size_t checked(std::size_t capacity) {
    require(capacity > 0, "queue: the capacity must be at least 1");
    return capacity;
  }

  /// Lets the producer take all the blocks it will ever need: those of `capacity` items that begin in the
  /// middle of a block. It keeps them.
  void reserve() {
    const std::size_t count = capacity_ + Items::BLOCK_SIZE;
    for (std::size_t i = 0; i < count; ++i)
      if (!producer_.valid() || !items_.enqueue(producer_, T{})) throw std::bad_alloc();
    T item{};
    for (std::size_t i = 0; i < count; ++i) items_.try_dequeue_from_producer(producer_, item);
  }

  Items items_;
  moodycamel::ProducerToken producer_;  // used to push under producerMutex_
  Mutex producerMutex_;
  moodycamel::LightweightSemaphore slots_;   // free places, plus one token that goes round once closed
  moodycamel::LightweightSemaphore filled_;  // items, plus one token that goes round once closed
  std::atomic<bool> closed_{false};          // written under producerMutex_
  const std::size_t capacity_;
};

}  // namespace muster
