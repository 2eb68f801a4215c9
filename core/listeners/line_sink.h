#pragma once

#include <functional>
#include <string_view>

namespace muster {

/// Receives a listener's lines, without a newline. Empty: they go to the log, as information.
using LineSink = std::function<void(std::string_view)>;

/// Passes `line` to `sink`, or to the log if it is empty.
void writeLine(const LineSink& sink, std::string_view line);

}  // namespace muster
