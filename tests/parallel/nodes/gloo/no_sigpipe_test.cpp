#include "muster/parallel/nodes/gloo/no_sigpipe.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <thread>

using namespace muster;

namespace {

bool waits() {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGPIPE) == 1;
}

bool isBlocked() {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return sigismember(&mask, SIGPIPE) == 1;
}

/// Writes to a pipe that is closed at the other end. @return the error.
int writeToClosed() {
  int ends[2];
  const bool made = pipe(ends) == 0;
  CHECK(made);  // an exception would end a thread's program
  if (!made) return 0;
  close(ends[0]);
  errno = 0;
  CHECK(write(ends[1], "x", 1) == -1);
  const int error = errno;
  close(ends[1]);
  return error;
}

}  // namespace

TEST_CASE("while the object lives a write to a closed connection is an error, and leaves no signal") {
  const bool before = isBlocked();
  {
    const NoSigpipe none;
    CHECK(isBlocked());
    CHECK(writeToClosed() == EPIPE);
  }
  CHECK_FALSE(waits());
  CHECK(isBlocked() == before);
}

TEST_CASE("a signal that waited before still waits") {
  std::jthread([] {
    blockSigpipe();
    pthread_kill(pthread_self(), SIGPIPE);
    {
      const NoSigpipe none;
      CHECK(writeToClosed() == EPIPE);
    }
    CHECK(waits());  // and ends with this thread
  });
}

TEST_CASE("a thread that blocks the signal starts others that do, too") {
  std::jthread([] {
    blockSigpipe();
    std::jthread([] { CHECK(writeToClosed() == EPIPE); });
  });
}
