#pragma once

namespace convergence {

inline constexpr int kInterruptedExit = 130;  // 128 + SIGINT, as shells count

/// From now on Ctrl-C (SIGINT) and SIGTERM are noted the first time, and end the program at once the second.
void noteInterrupts();

/// Whether one was noted.
bool interrupted();

}  // namespace convergence
