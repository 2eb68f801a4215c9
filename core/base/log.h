#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace muster {

enum class LogLevel { Debug, Info, Warning, Error };

/// Where log lines go; called one at a time. Default: `muster: text` on standard error, from Info upwards.
using LogSink = std::function<void(LogLevel, std::string_view)>;

/// Replaces the sink of the whole process and returns the one before. An empty sink restores the default.
/// Thread-safe.
LogSink setLogSink(LogSink sink);

/// What the default sink does with a line: for sinks that only add to it.
void printLogLine(LogLevel level, std::string_view text);

/// Hands one line to the sink. Thread-safe; never throws: a sink that throws loses its line.
void log(LogLevel level, std::string_view text) noexcept;

template <typename... Args>
void logInfo(fmt::format_string<Args...> text, Args&&... args) {
  log(LogLevel::Info, fmt::format(text, std::forward<Args>(args)...));
}

template <typename... Args>
void logWarning(fmt::format_string<Args...> text, Args&&... args) {
  log(LogLevel::Warning, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace muster
