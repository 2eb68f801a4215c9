// Debian's libgomp is not instrumented: it starts and joins its teams with futex calls, so ThreadSanitizer
// reports races in all data that a team shares with the thread that opened the region. These functions
// replace the two libgomp entry points that our code and oneDNN use, and tell ThreadSanitizer about their
// synchronisation.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

namespace {

struct Region {
  void (*body)(void*);
  void* data;
  // Synchronisation objects for ThreadSanitizer; only their addresses matter.
  char opened, barrier, closed;
};

thread_local Region* current = nullptr;

void runInTeam(void* argument) {
  auto* region = static_cast<Region*>(argument);
  __tsan_acquire(&region->opened);
  Region* const outer = current;
  current = region;
  region->body(region->data);
  current = outer;
  __tsan_release(&region->closed);
}

template <typename Function>
Function original(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags) {
  static const auto parallel =
      original<void (*)(void (*)(void*), void*, unsigned, unsigned)>("GOMP_parallel");
  Region region{body, data, 0, 0, 0};
  __tsan_release(&region.opened);
  parallel(runInTeam, &region, threads, flags);
  __tsan_acquire(&region.closed);
}

extern "C" void GOMP_barrier() {
  static const auto barrier = original<void (*)()>("GOMP_barrier");
  if (current == nullptr) return barrier();
  __tsan_release(&current->barrier);
  barrier();
  __tsan_acquire(&current->barrier);
}
