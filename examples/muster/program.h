#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string_view>

#include "muster/core/base/interrupt.h"

namespace program {

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

/// What a signal after a training says.
inline constexpr std::string_view kNetworkSaved =
    "Interrupted after training: the network is saved, and further results are left out.";
inline constexpr std::string_view kNetworkNotSaved = "Interrupted after training: the network is not saved.";

/// Ctrl-C and the other signals of muster::Interrupt during and after a training. Make one when the training
/// begins, and call `end` once the network is saved, or is known not to be.
class TrainingInterrupt {
 public:
  /// From now on the first signal requests a stop and logs a notice; the second ends the program. If the
  /// training throws, a later signal ends the program with the sentence "Interrupted."
  TrainingInterrupt();

  /// For `fit`, which ends after the step in progress.
  std::stop_token token() const { return token_; }
  bool requested() const { return token_.stop_requested(); }

  /// The training has ended: from now on a signal ends the program at once, and says whether the network is
  /// saved, as endOnInterrupt says it. `requested()` keeps its value.
  void end(bool saved) { endWith(saved ? kNetworkSaved : kNetworkNotSaved); }
  /// For a process that saves nothing, because another one does: the sentence is "Interrupted."
  void end() { endWith("Interrupted."); }
  void end(const char*) = delete;  // it would convert to bool

 private:
  void endWith(std::string_view sentence);

  std::optional<muster::Interrupt> interrupt_;  // until `end`
  std::stop_token token_;
};

}  // namespace program
