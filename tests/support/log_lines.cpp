#include "tests/support/log_lines.h"

namespace muster::test {

LogLines::LogLines() {
  sinkBefore_ = setLogSink([this](LogLevel level, std::string_view line) {
    std::scoped_lock lock(mutex_);
    lines_.push_back((level == LogLevel::Warning ? "warning: " : "") + std::string(line));
  });
}

LogLines::~LogLines() {
  setLogSink(sinkBefore_);
}

std::vector<std::string> LogLines::all() const {
  std::scoped_lock lock(mutex_);
  return lines_;
}

void LogLines::forget() {
  std::scoped_lock lock(mutex_);
  lines_.clear();
}

std::string LogLines::lineWith(std::initializer_list<std::string_view> parts,
                               std::initializer_list<std::string_view> absent) const {
  std::string last = "nothing was logged";
  for (int i = 0; i < 60'000; ++i) {  // at most a minute; a busy machine may need seconds
    for (const auto& line : all()) {
      const auto has = [&](std::string_view part) { return line.find(part) != std::string::npos; };
      if (std::ranges::all_of(parts, has) && std::ranges::none_of(absent, has)) return line;
      last = line;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return "no line has it all; the last one: " + last;
}

}  // namespace muster::test
