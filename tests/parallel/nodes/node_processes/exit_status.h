#pragma once

#include <iostream>

#include "tests/support/temporary_directory.h"

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

/// Writes a file, under another name until it is whole.
inline void writeWhole(const std::filesystem::path& path, std::string_view text) {
  const auto part = path.string() + ".part";
  writeFile(part, std::string(text));
  std::filesystem::rename(part, path);
}

}  // namespace muster::test
