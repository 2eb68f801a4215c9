#include "muster/datasets/directory_lock.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/support/test.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a second process waits, and gets the lock when the first is killed") {
  const test::TemporaryDirectory directory;
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const DirectoryLock lock(directory.path());
    [[maybe_unused]] const auto said = ::write(ends[1], "x", 1);
    for (;;) ::pause();
  }
  char said = 0;
  REQUIRE(::read(ends[0], &said, 1) == 1);  // it has the lock
  std::atomic<bool> killed{false};
  std::jthread killer([&] {
    std::this_thread::sleep_for(50ms);
    killed = true;
    ::kill(holder, SIGKILL);
    ::waitpid(holder, nullptr, 0);
  });
  const DirectoryLock lock(directory.path());
  CHECK(killed);
  for (const int end : ends) ::close(end);
}

TEST_CASE("a lock creates its directory, can be taken again, and threads of one process exclude each other") {
  const test::TemporaryDirectory directory;
  for (int i = 0; i < 2; ++i) DirectoryLock lock(directory / "a/b");  // creates it, and can be taken again
  auto lock = std::make_unique<DirectoryLock>(directory / "a/b");
  std::atomic<bool> held{false};
  std::jthread other([&] {
    const DirectoryLock second(directory / "a/b");
    held = true;
  });
  std::this_thread::sleep_for(30ms);
  CHECK_FALSE(held);
  lock.reset();
  other.join();
  CHECK(held);
}

TEST_CASE("a path where no directory can be created is refused by name") {
  const test::TemporaryDirectory directory;
  test::writeFile(directory / "file", "");
  CHECK_CONTAINS(test::thrown<FileError>([&] { DirectoryLock(directory / "file/sub"); }), "file/sub");
}

}  // namespace
}  // namespace muster
