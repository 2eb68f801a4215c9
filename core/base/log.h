#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace muster {
/// How important a line of the log is.
enum class LogLevel { Debug, Info, Warning, Error };

/// Receives log lines, one at a time. Default: `muster: text` on standard error, from Info on; over several
/// nodes `muster: node 1 (hosta): text` (process_name.h).
using LogSink = std::function<void(LogLevel, std::string_view)>;

/// Replaces the sink of the whole process and returns the previous one. An empty sink restores the default.
/// Thread-safe.
LogSink setLogSink(LogSink sink);

/// The default sink, for sinks that extend it.
void printLogLine(LogLevel level, std::string_view text);

/// Passes one line to the sink. Thread-safe; never throws: if the sink throws, the line is lost.
void log(LogLevel level, std::string_view text) noexcept;
/// Logs a formatted line.
template <typename... Args>
void logInfo(fmt::format_string<Args...> text, Args&&... args) {
  log(LogLevel::Info, fmt::format(text, std::forward<Args>(args)...));
}
/// Logs a formatted warning.
template <typename... Args>
void logWarning(fmt::format_string<Args...> text, Args&&... args) {
  log(LogLevel::Warning, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace muster
