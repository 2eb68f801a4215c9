#pragma once

namespace muster::test {

/// Number of allocations with operator new by this process so far, on all threads, except those of a vendor's
/// library inside our calls. A program that calls this gets counting allocation functions.
long allocations();

/// Number of live objects from operator new.
long liveObjects();

/// While it lives, allocations with operator new fail, on any thread, but for those of a vendor's library
/// inside a call of ours. One at a time.
class FailingAllocations {
 public:
  enum class Lasting { No, Yes };

  /// @param nth  the allocation that fails, counted from 0.
  /// @param lasting  Yes: all that follow it fail, too.
  explicit FailingAllocations(long nth, Lasting lasting = Lasting::No);
  ~FailingAllocations();
  FailingAllocations(const FailingAllocations&) = delete;
  FailingAllocations& operator=(const FailingAllocations&) = delete;

  /// Whether there were so many.
  bool any() const;
};

}  // namespace muster::test
