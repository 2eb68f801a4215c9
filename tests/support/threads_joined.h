#pragma once

#include <doctest/doctest.h>

#include "tests/support/at_rest.h"

namespace muster::test {

/// Checks at its end that all threads that were started in its lifetime have ended.
class ThreadsJoined {
 public:
  ThreadsJoined() = default;
  ~ThreadsJoined() { CHECK(awaitRest() == before_); }
  ThreadsJoined(const ThreadsJoined&) = delete;
  ThreadsJoined& operator=(const ThreadsJoined&) = delete;

 private:
  const std::ptrdiff_t before_ = awaitRest();
};

}  // namespace muster::test
