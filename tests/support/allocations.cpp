#include "tests/support/allocations.h"

#include <new>

#include "muster/core/base/detail/vendor_call.h"
#include "tests/support/standard.h"

namespace {

std::atomic<long> count{0};
std::atomic<long> live{0};
std::atomic<bool> failing{false};
std::atomic<long> untilFailure{0};  // below 0: it has failed
std::atomic<bool> failureLasts{false};

/// Whether this allocation is to fail.
bool fails() {
  if (!failing || muster::detail::VendorCall::active()) return false;
  const long left = untilFailure--;
  return left == 0 || (left < 0 && failureLasts);
}

/// @return null if there is no memory.
void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (!muster::detail::VendorCall::active()) ++count;
  if (fails()) return nullptr;
  const std::size_t rounded = (bytes + alignment) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory) ++live;
  return memory;
}

void* allocateOrThrow(std::size_t bytes, std::size_t alignment) {
  void* memory = allocate(bytes, alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}

void release(void* memory) {
  if (!memory) return;
  --live;
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t bytes) {
  return allocateOrThrow(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocateOrThrow(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, alignof(std::max_align_t));
}
void operator delete(void* memory) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  release(memory);
}

namespace muster::test {

long allocations() {
  return count;
}

long liveObjects() {
  return live;
}

FailingAllocations::FailingAllocations(long nth, Lasting lasting) {
  untilFailure = nth;
  failureLasts = lasting == Lasting::Yes;
  failing = true;
}

FailingAllocations::~FailingAllocations() {
  failing = false;
}

bool FailingAllocations::any() const {
  return untilFailure < 0;
}

}  // namespace muster::test
