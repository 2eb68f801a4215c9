#include "muster/datasets/directory_lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

/// A process that takes the lock, reports it, and holds it until it is killed.
class Holder {
 public:
  explicit Holder(const std::filesystem::path& directory) {
    REQUIRE(::pipe(pipe_.data()) == 0);
    child_ = ::fork();
    if (child_ != 0) return;
    const DirectoryLock lock(directory);
    [[maybe_unused]] const auto said = ::write(pipe_[1], "x", 1);
    for (;;) ::pause();
  }
  ~Holder() {
    kill();
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  /// Waits until it has the lock.
  void waitUntilHeld() {
    char said = 0;
    REQUIRE(::read(pipe_[0], &said, 1) == 1);
  }
  void kill() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = 0;
  }

 private:
  std::array<int, 2> pipe_{};
  pid_t child_ = 0;
};

TEST_CASE("a lock creates its directory, and can be taken again") {
  const test::TemporaryDirectory directory;
  for (int i = 0; i < 2; ++i) DirectoryLock lock(directory / "a/b");
  CHECK(std::filesystem::is_directory(directory / "a/b"));
}

TEST_CASE("a second process waits, and gets the lock when the first is killed") {
  const test::TemporaryDirectory directory;
  Holder first(directory.path());
  first.waitUntilHeld();
  std::atomic<bool> killed{false};
  std::jthread killer([&] {
    std::this_thread::sleep_for(50ms);
    killed = true;
    first.kill();
  });
  const DirectoryLock lock(directory.path());
  CHECK(killed);
}

TEST_CASE("threads of one process exclude each other") {
  const test::TemporaryDirectory directory;
  auto lock = std::make_unique<DirectoryLock>(directory.path());
  std::atomic<bool> held{false};
  std::jthread other([&] {
    const DirectoryLock second(directory.path());
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
  const auto text = test::thrown<FileError>([&] { DirectoryLock(directory / "file/sub"); });
  CHECK_CONTAINS(text, "file/sub");
}

}  // namespace
}  // namespace muster
