#include "muster/core/backend/cpu/code_room.h"

#include <omp.h>
#include <sys/mman.h>

#include <array>

#include "muster/core/backend/cpu/gemm.h"
#include "muster/core/base/error.h"

namespace muster::cpu {
namespace {

constexpr std::size_t kProductCodeBytes = std::size_t{32} << 20;  // oneDNN 2.6 takes 18 MB

/// Products of all combinations of transposed factors, small ones and one of several blocks: each has its own
/// kernels. On the calling thread alone, so that OpenMP starts no threads for it.
void multiplyOnce() {
  struct OneThread {
    const int before = omp_get_max_threads();
    OneThread() { omp_set_num_threads(1); }
    ~OneThread() { omp_set_num_threads(before); }
  } const oneThread;
  constexpr std::int64_t kLargest = 64;
  static std::array<float, kLargest * kLargest> a{}, b{}, c{};
  for (const std::int64_t size : {std::int64_t{1}, std::int64_t{2}, kLargest})
    for (const bool left : {false, true})
      for (const bool right : {false, true})
        for (const float keep : {0.0f, 1.0f})
          gemm(size, size, size, {a.data(), size, left}, {b.data(), size, right}, keep, c.data(), size);
}

}  // namespace

void requireCodeRoom(std::size_t bytes) {
  void* const room = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED)
    throw OutOfMemory(fmt::format(
        "memory has run out: this process cannot have {} MB more, for the code that oneDNN generates",
        bytes >> 20));
  ::munmap(room, bytes);
}

void generateProducts() {
  static bool done = false;
  const std::scoped_lock lock(planningMutex());
  if (done) return;
  requireCodeRoom(kProductCodeBytes);
  multiplyOnce();
  done = true;
}

}  // namespace muster::cpu
