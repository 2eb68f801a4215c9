// During the lifetime of a FailingMalloc, allocations by malloc, its relatives and mmap fail. Not inside a
// vendor's library: oneDNN writes to null pointers then, so our code asks for room before it calls oneDNN.

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "muster/core/base/detail/vendor_call.h"
#include "tests/support/allocations.h"

// The GNU C library's own names of the functions that this file replaces.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
}

namespace {

bool fails() {
  using Failing = muster::test::FailingMalloc;
  if (!Failing::active() || muster::detail::VendorCall::active() || !Failing::next()) return false;
  errno = ENOMEM;
  return true;
}

}  // namespace

extern "C" {
void* malloc(std::size_t bytes) {
  return fails() ? nullptr : __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  return fails() ? nullptr : __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  return fails() ? nullptr : __libc_realloc(memory, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  return fails() ? nullptr : __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return fails() ? nullptr : __libc_memalign(alignment, bytes);
}
void* mmap(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset) {
  if (fails()) return MAP_FAILED;
  return reinterpret_cast<void*>(::syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  if (fails()) return ENOMEM;
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : ENOMEM;
}
}
