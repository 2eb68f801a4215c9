#pragma once

#include <cstddef>
#include <string_view>

namespace muster::detail {

/// While it lives, the calling thread's log lines begin with `name` and a colon, so that a plan's warning
/// names its layer. Scopes nest.
class LogScope {
 public:
  explicit LogScope(std::string_view name);
  ~LogScope();
  LogScope(const LogScope&) = delete;
  LogScope& operator=(const LogScope&) = delete;

  /// The name of the calling thread's innermost scope; "" outside of any. Valid until that scope ends.
  static std::string_view innermost();

 private:
  std::size_t before_;  // length of the thread's prefix
};

/// Logs a warning, but each line only once in the process: every replica and every batch shape plans the same
/// layers. Thread-safe; never throws.
void warnOnce(std::string_view text) noexcept;

}  // namespace muster::detail
