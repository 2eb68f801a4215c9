#pragma once

#include <atomic>

namespace muster::test {

/// Number of allocations with operator new in this process so far, on all threads, except allocations of a
/// vendor's library inside our calls and of oneDNN on threads of its own. Linking this function replaces the
/// allocation functions by counting ones.
long allocations();

/// Number of allocations while `call` runs.
template <typename Call>
long allocationsIn(Call&& call) {
  const long before = allocations();
  call();
  return allocations() - before;
}

/// Number of live objects from operator new.
long liveObjects();

/// During its lifetime, allocations with operator new fail on every thread, except as in `allocations`; in a
/// program with failing_malloc.cpp, those by malloc and the like. One at a time.
class FailingAllocations {
 public:
  enum class Lasting { No, Yes };

  /// @param nth  the allocation that fails, counted from 0.
  /// @param lasting  Yes: all later ones fail, too.
  explicit FailingAllocations(long nth, Lasting lasting = Lasting::No);
  ~FailingAllocations() { failing_ = false; }
  FailingAllocations(const FailingAllocations&) = delete;
  FailingAllocations& operator=(const FailingAllocations&) = delete;

  /// Whether any allocation failed.
  bool any() const { return left_ < 0; }

  /// For what allocates: whether there is such an object, and whether this allocation fails.
  static bool active() { return failing_; }
  static bool next() {
    if (!failing_) return false;
    const long left = left_--;
    return left == 0 || (left < 0 && lasts_);
  }

 private:
  static void begin(long nth, Lasting lasting) {
    left_ = nth;
    lasts_ = lasting == Lasting::Yes;
    failing_ = true;
  }
  static inline std::atomic<bool> failing_{false}, lasts_{false};
  static inline std::atomic<long> left_{0};
};

}  // namespace muster::test
