#include "tests/support/at_rest.h"

#include <fmt/format.h>
#include <unistd.h>

#include "tests/support/allocations.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temporary_directory.h"

namespace muster::test {
namespace {

/// The state of a thread as in proc(5); 'X' if the thread has ended.
char stateOf(const std::filesystem::path& task) {
  const std::string text = readFile(task / "stat");
  const auto name = text.rfind(") ");  // the name may contain ") "
  return name == std::string::npos ? 'X' : text[name + 2];
}

/// The number of threads; 0 if another thread is running.
std::ptrdiff_t threadsIfAtRest() {
  std::ptrdiff_t all = 0;
  const auto own = std::to_string(::gettid());
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const char state = stateOf(task.path());
    if (state == 'X' || state == 'Z') continue;  // joined, but not removed yet
    if (state != 'S' && task.path().filename() != own) return 0;
    ++all;
  }
  return all;
}

}  // namespace

std::ptrdiff_t awaitRest() {
  if constexpr (kThreadSanitizer) {  // ThreadSanitizer starts its own thread with the program's first
    static const bool kStarted = (std::thread([] {}).join(), true);
    static_cast<void>(kStarted);
  }
  // Check twice: a thread seen asleep may have been woken by a thread that was checked later.
  for (std::ptrdiff_t last = 0;;) {
    const auto now = threadsIfAtRest();
    if (now > 0 && now == last) return now;
    last = now;
    if (now == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

long liveObjectsAtRest() {
  awaitRest();
  return liveObjects();
}

}  // namespace muster::test
