#pragma once

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "muster/core/base/error.h"

extern char** environ;

namespace muster::test {

/// A child process, which ends at the latest with this object.
class Process {
 public:
  explicit Process(std::vector<std::string> words) {
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (posix_spawn(&pid_, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0)
      throw Error("cannot start " + words[0]);
  }
  ~Process() {
    if (pid_ <= 0) return;
    send(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, 0)), status_(other.status_) {}
  Process& operator=(Process&&) = delete;

  void send(int signal) const { ::kill(pid_, signal); }
  /// Waits for its end. @return its status; -1 if a signal killed it, -2 if it did not end in time.
  int wait(std::chrono::seconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (std::chrono::steady_clock::now() < end) {
      if (pid_ > 0 && waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = 0;
      if (pid_ == 0) return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return -2;
  }

 private:
  pid_t pid_ = 0;  // 0: it has ended
  int status_ = 0;
};

}  // namespace muster::test
