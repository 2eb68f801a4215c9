#pragma once

#include <string_view>

namespace example {

inline constexpr int kInterruptedExit = 130;  // 128 + SIGINT, as shells count

/// From now on the first Ctrl-C (SIGINT) or SIGTERM calls `take` and prints `notice` on the standard error;
/// where `take` returns false, and at the second signal, the program ends at once with 130.
/// @param take  called in the signal handler: only calls that are safe there.
/// @param notice  must outlive the program's signals, as a literal does.
void handleInterrupts(bool (*take)(), std::string_view notice);

/// Whether a signal has come that was taken.
bool interrupted();

}  // namespace example
