#include "muster/core/base/log.h"

#include <cstdio>
#include <mutex>

namespace muster {
namespace {

struct Logger {
  std::mutex mutex;
  LogSink sink;  // guarded by mutex
};

Logger& logger() {
  static Logger instance;
  return instance;
}

}  // namespace

void printLogLine(LogLevel level, std::string_view text) {
  if (level == LogLevel::Debug) return;
  const char* prefix = level == LogLevel::Warning ? "warning: " : level == LogLevel::Error ? "error: " : "";
  fmt::print(stderr, "muster: {}{}\n", prefix, text);
}

LogSink setLogSink(LogSink sink) {
  std::scoped_lock lock(logger().mutex);
  return std::exchange(logger().sink, std::move(sink));
}

void log(LogLevel level, std::string_view text) noexcept {
  try {
    std::scoped_lock lock(logger().mutex);
    logger().sink ? logger().sink(level, text) : printLogLine(level, text);
  } catch (...) {  // logging is used in destructors: a line is lost rather than the process
  }
}

}  // namespace muster
