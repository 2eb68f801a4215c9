#pragma once

#include "tests/support/temporary_directory.h"

namespace muster::test {

/// An empty directory that the process works in until the end of the object.
class WorkingDirectory {
 public:
  WorkingDirectory() { std::filesystem::current_path(directory_.path()); }
  ~WorkingDirectory() { std::filesystem::current_path(before_); }
  WorkingDirectory(const WorkingDirectory&) = delete;
  WorkingDirectory& operator=(const WorkingDirectory&) = delete;

 private:
  const std::filesystem::path before_ = std::filesystem::current_path();
  TemporaryDirectory directory_;
};

}  // namespace muster::test
