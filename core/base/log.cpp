#include "muster/core/base/log.h"

#include <cstdio>
#include <set>
#include <string>

#include "muster/core/base/detail/log_scope.h"
#include "muster/core/base/mutex.h"
#include "muster/core/base/printable_text.h"
#include "muster/core/base/process_name.h"
#include "muster/core/base/terminal_size.h"

namespace muster {
namespace {

struct Logger {
  Mutex mutex;
  LogSink sink MUSTER_GUARDED_BY(mutex);
  std::set<std::string> warned MUSTER_GUARDED_BY(mutex);
};

thread_local std::string prefix;  // of the thread's log scopes

Logger& logger() {
  static Logger instance;
  return instance;
}

}  // namespace

void printLogLine(LogLevel level, std::string_view text) {
  if (level == LogLevel::Debug) return;
  const char* kind = level == LogLevel::Warning ? "warning: " : level == LogLevel::Error ? "error: " : "";
  fmt::print(stderr, "{}",
             linesForTerminal(fmt::format("{}{}{}", lineStart("muster"), kind, printableText(text))));
}

LogSink setLogSink(LogSink sink) {
  const Lock lock(logger().mutex);
  return std::exchange(logger().sink, std::move(sink));
}

namespace {
void send(LogLevel level, std::string_view text) MUSTER_REQUIRES(logger().mutex) {
  logger().sink ? logger().sink(level, text) : printLogLine(level, text);
}
}  // namespace

void log(LogLevel level, std::string_view text) noexcept {
  try {
    const Lock lock(logger().mutex);
    if (prefix.empty())
      send(level, text);
    else
      send(level, prefix + std::string(text));
  } catch (...) {  // destructors log: losing a line is better than ending the process
  }
}

namespace detail {

LogScope::LogScope(std::string_view name) : before_(prefix.size()) {
  prefix.append(name).append(": ");
}

LogScope::~LogScope() {
  prefix.resize(before_);
}

std::string_view LogScope::innermost() {
  std::string_view names = prefix;
  if (names.empty()) return names;
  names.remove_suffix(2);  // ": "
  const auto before = names.rfind(": ");
  return before == std::string_view::npos ? names : names.substr(before + 2);
}

void warnOnce(std::string_view text) noexcept {
  try {
    const Lock lock(logger().mutex);
    if (const auto [line, isNew] = logger().warned.insert(prefix + std::string(text)); isNew)
      send(LogLevel::Warning, *line);
  } catch (...) {  // as above
  }
}

}  // namespace detail
}  // namespace muster
