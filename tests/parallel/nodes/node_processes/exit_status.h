#pragma once

#include <exception>
#include <iostream>

namespace muster::test {

/// For the `main` of a test's process: the result of `run`, or 4 if it throws; prints the exception.
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
