#pragma once

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "tests/support/sanitizers.h"
#include "tests/support/standard.h"

namespace muster::test {

namespace support {
/// Runs `body` in a child process with the writing end of a pipe. @return the child's status.
/// @param text  what the child wrote into the pipe.
inline int runChild(const std::function<void(int)>& body, std::string& text) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    body(ends[1]);
    ::_exit(0);
  }
  ::close(ends[1]);
  text.resize(4096);
  const ssize_t got = ::read(ends[0], text.data(), text.size());
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}
}  // namespace support

/// Runs `body` in a child process, whose limits and user it may change. @return its result.
inline std::string inChild(const std::function<std::string()>& body) {
  std::string text;
  const int status = support::runChild(
      [&](int pipe) {
        std::string result;
        try {
          result = body();
        } catch (const std::exception& error) {
          result = std::string("unexpected: ") + error.what();
        }
        [[maybe_unused]] const auto written = ::write(pipe, result.data(), result.size());
      },
      text);
  CHECK(WIFEXITED(status));
  return text;
}

/// Runs `body`, which must abort, in a child process. @return what it wrote to standard error.
inline std::string dyingWords(const std::function<void()>& body) {
  std::string text;
  const int status = support::runChild(
      [&](int pipe) {
        std::signal(SIGABRT, SIG_DFL);
        ::dup2(pipe, STDERR_FILENO);
        ::alarm(20);  // ends a child that hangs
        body();
      },
      text);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
  return text;
}

/// Limits the process to `bytes` more memory than it has now. No effect with sanitizers.
inline void allowMemory(std::size_t bytes) {
  if (kSanitized) return;
  std::ifstream status("/proc/self/statm");  // pages: all, resident, shared, text, 0, data
  std::size_t pages = 0;
  for (int i = 0; i < 6; ++i) status >> pages;
  const rlim_t most = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + bytes;
  const rlimit limit{most, most};
  ::setrlimit(RLIMIT_DATA, &limit);
}

/// Limits files written by the process to `bytes`, to simulate a full disk.
inline void limitFileSize(rlim_t bytes) {
  std::signal(SIGXFSZ, SIG_IGN);  // the limit gives an error instead of ending the process
  const rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

}  // namespace muster::test
