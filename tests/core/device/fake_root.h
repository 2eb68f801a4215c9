#pragma once

#include "tests/support/temporary_directory.h"

namespace muster::test {

/// A file system of the kernel's files.
class FakeRoot {
 public:
  const std::filesystem::path& path() const { return directory_.path(); }
  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((directory_ / file).parent_path());
    writeFile(directory_ / file, text);
  }

 private:
  TemporaryDirectory directory_;
};

}  // namespace muster::test
