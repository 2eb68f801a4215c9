#include "tests/support/allocations.h"

#include <link.h>

#include <new>

#include "muster/core/base/detail/vendor_call.h"
#include "tests/support/standard.h"

namespace {

std::atomic<long> count{0};
std::atomic<long> live{0};

/// Where a library is in memory.
struct Range {
  std::uintptr_t begin = std::numeric_limits<std::uintptr_t>::max(), end = 0;
};

/// Where oneDNN is; nowhere if it is linked statically.
Range loadedOneDnn() {
  Range range;
  dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* found) {
        if (!std::strstr(library->dlpi_name, "libdnnl")) return 0;
        auto& all = *static_cast<Range*>(found);
        for (int i = 0; i < library->dlpi_phnum; ++i) {
          const auto& segment = library->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD) continue;
          all.begin = std::min<std::uintptr_t>(all.begin, library->dlpi_addr + segment.p_vaddr);
          all.end = std::max<std::uintptr_t>(all.end, library->dlpi_addr + segment.p_vaddr + segment.p_memsz);
        }
        return 0;
      },
      &range);
  return range;
}

/// Whether a vendor's library allocates: inside our call, or as oneDNN on threads of its own.
/// @param caller  the address from which operator new was called.
bool ofVendor(const void* caller) {
  if (muster::detail::VendorCall::active()) return true;
  static const Range oneDnn = loadedOneDnn();
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  return address >= oneDnn.begin && address < oneDnn.end;
}

/// @return null if there is no memory.
void* allocate(std::size_t bytes, std::size_t alignment, const void* caller) noexcept {
  if (!ofVendor(caller)) {
    ++count;
    if (muster::test::FailingAllocations::next()) return nullptr;
  }
  const std::size_t rounded = (bytes + alignment) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory) ++live;
  return memory;
}

void* allocateOrThrow(std::size_t bytes, std::size_t alignment, const void* caller) {
  void* memory = allocate(bytes, alignment, caller);
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
  return allocateOrThrow(bytes, alignof(std::max_align_t), __builtin_return_address(0));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocateOrThrow(bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, alignof(std::max_align_t), __builtin_return_address(0));
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

// Linking it replaces operator new.
FailingAllocations::FailingAllocations(long nth, Lasting lasting) : AllocationFailure(nth, lasting) {}

}  // namespace muster::test
