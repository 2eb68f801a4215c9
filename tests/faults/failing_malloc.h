#pragma once

namespace muster::test {

/// During its lifetime an allocation by the C library's functions fails: by malloc, by which operator new and
/// most libraries allocate, by its relatives, and by mmap. Not inside a vendor's library: oneDNN writes to
/// null pointers then, so our code asks for room before it calls oneDNN. One at a time. Linking it replaces
/// these functions.
class FailingMalloc {
 public:
  enum class Lasting { No, Yes };

  /// @param nth  the allocation that fails, counted from 0 over all threads.
  /// @param lasting  Yes: all later ones fail, too.
  explicit FailingMalloc(long nth, Lasting lasting = Lasting::No);
  ~FailingMalloc();
  FailingMalloc(const FailingMalloc&) = delete;
  FailingMalloc& operator=(const FailingMalloc&) = delete;

  /// Whether any allocation failed.
  bool any() const;
};

}  // namespace muster::test
