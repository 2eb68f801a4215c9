#pragma once

#include <functional>
#include <string_view>

namespace muster {

/// Where a listener's lines go, without a newline. Empty: to the log, as information.
using LineSink = std::function<void(std::string_view)>;

/// Hands `line` to `sink`, or to the log where there is none.
void writeLine(const LineSink& sink, std::string_view line);

}  // namespace muster
