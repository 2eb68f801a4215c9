#include "tests/support/at_rest.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/support/allocations.h"
#include "tests/support/temporary_directory.h"

namespace muster::test {
namespace {

/// The state of a thread as proc(5) names it; 'X' where the thread has gone.
char stateOf(const std::filesystem::path& task) {
  const std::string text = readFile(task / "stat");
  const auto name = text.rfind(") ");  // it may hold anything
  return name == std::string::npos ? 'X' : text[name + 2];
}

/// The number of threads; 0 where one besides this runs.
std::ptrdiff_t threadsIfAtRest() {
  std::ptrdiff_t all = 0;
  const auto own = std::to_string(::gettid());
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const char state = stateOf(task.path());
    if (state == 'X' || state == 'Z') continue;  // joined, and not quite gone
    if (state != 'S' && task.path().filename() != own) return 0;
    ++all;
  }
  return all;
}

}  // namespace

std::ptrdiff_t awaitRest() {
  // Seen twice: one that slept when it was looked at may have been woken by one that was looked at later.
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
