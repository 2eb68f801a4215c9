#pragma once

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <functional>
#include <string>

namespace muster::test {

/// What `body` returns in a process of its own, whose limits and user it may change.
inline std::string inChild(const std::function<std::string()>& body) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::string text;
    try {
      text = body();
    } catch (const std::exception& error) {
      text = std::string("unexpected: ") + error.what();
    }
    [[maybe_unused]] const auto written = ::write(ends[1], text.data(), text.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text(4096, '\0');
  const ssize_t got = ::read(ends[0], text.data(), text.size());
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  return text;
}

/// What `body` writes to standard error in a process of its own, which it has to abort.
inline std::string dyingWords(const std::function<void()>& body) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    ::dup2(ends[1], STDERR_FILENO);
    ::alarm(20);  // ends a child that hangs
    body();
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text(4096, '\0');
  const ssize_t got = ::read(ends[0], text.data(), text.size());
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
  return text;
}

/// From here on the process cannot write files of more than `bytes`: as if the disk were full.
inline void limitFileSize(rlim_t bytes) {
  std::signal(SIGXFSZ, SIG_IGN);  // so that the limit is an error and not the end
  const rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

}  // namespace muster::test
