#pragma once

namespace muster::test {

/// How often this process has allocated with operator new so far, on any thread, but for what a
/// vendor's library allocates inside a call of ours. A program that calls this
/// gets counting allocation functions; all others keep the usual ones.
long allocations();

/// How many of the objects from operator new are still there, whoever allocated them.
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
