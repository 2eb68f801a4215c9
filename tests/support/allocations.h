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

/// During its lifetime allocations fail on every thread. One at a time.
/// @tparam By  which ones.
template <typename By>
class AllocationFailure {
 public:
  enum class Lasting { No, Yes };

  /// @param nth  the allocation that fails, counted from 0.
  /// @param lasting  Yes: all later ones fail, too.
  explicit AllocationFailure(long nth, Lasting lasting = Lasting::No) {
    left_ = nth;
    lasts_ = lasting == Lasting::Yes;
    active_ = true;
  }
  ~AllocationFailure() { active_ = false; }
  AllocationFailure(const AllocationFailure&) = delete;
  AllocationFailure& operator=(const AllocationFailure&) = delete;

  /// Whether any allocation failed.
  bool any() const { return left_ < 0; }

  /// For what allocates: whether there is such an object, and whether this allocation fails.
  static bool active() { return active_; }
  static bool next() {
    if (!active_) return false;
    const long left = left_--;
    return left == 0 || (left < 0 && lasts_);
  }

 private:
  static inline std::atomic<bool> active_{false}, lasts_{false};
  static inline std::atomic<long> left_{0};
};

/// Those with operator new, except as in `allocations`.
struct FailingAllocations : AllocationFailure<struct ByNew> {
  explicit FailingAllocations(long nth, Lasting lasting = Lasting::No);
};
/// Those of tests/faults/failing_malloc.cpp, in a program that has it.
using FailingMalloc = AllocationFailure<struct ByMalloc>;

}  // namespace muster::test
