#pragma once

#include <functional>
#include <string_view>

namespace example {

/// The `main` of a program: calls `body` and returns the exit status.
///
/// - If `body` returns, the status is its result; but if output was lost (a full disk), 1 instead of 0.
/// - If `body` throws, the error is printed to standard error. The status is 2 for an invalid option
///   (muster::InvalidArgument) and 1 for any other error.
/// - Ctrl-C ends the program with 130, see endOnInterrupt.
int runProgram(std::string_view name, const std::function<int()>& body);

/// From now on a signal that comes while no muster::Interrupt lives ends the program as exitOnInterrupt says,
/// with this sentence. Until a program calls it, the sentence is "Interrupted."
void endOnInterrupt(std::string_view sentence);

/// The sentence for `endOnInterrupt` before a training.
inline constexpr std::string_view kInterruptedBefore = "Interrupted before training; nothing was saved.";

}  // namespace example
