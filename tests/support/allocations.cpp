#include "tests/support/allocations.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "muster/core/base/detail/vendor_call.h"

namespace {

std::atomic<long> count{0};
std::atomic<long> live{0};

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (!muster::detail::VendorCall::active()) ++count;
  const std::size_t rounded = (bytes + alignment) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (!memory) throw std::bad_alloc();
  ++live;
  return memory;
}

void release(void* memory) {
  if (!memory) return;
  --live;
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t bytes) {
  return allocate(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
// For a sanitizer, whose own would not be released by ours. Without memory it throws out of noexcept: the
// end.
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

}  // namespace muster::test
