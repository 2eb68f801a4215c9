#pragma once

#include "muster/core/base/log.h"
#include "tests/support/standard.h"

namespace muster::test {

/// Collects log lines during its lifetime, warnings as "warning: ...". One at a time; thread-safe.
class LogLines {
 public:
  LogLines();
  ~LogLines();
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;

  std::vector<std::string> all() const;
  void forget();
  /// Waits for a line that has all of `parts` and none of `absent`.
  std::string lineWith(std::initializer_list<std::string_view> parts,
                       std::initializer_list<std::string_view> absent = {}) const;

 private:
  LogSink sinkBefore_;
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;  // guarded by mutex_
};

}  // namespace muster::test
