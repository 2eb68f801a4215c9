#pragma once

#include <exception>
#include <iostream>

namespace muster::test {

/// For the `main` of a process of a test: what `run` returns, or 4 if it throws, which is then told.
template <typename F>
int exitStatus(F run) {
  try {
    return run();
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 4;
  }
}

}  // namespace muster::test
