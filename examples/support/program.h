#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "muster/core/base/interrupt.h"

namespace example {

/// Runs a program's `main` and returns its exit status: that of `body`, or, with a sentence on standard
/// error, 2 for an invalid option (muster::InvalidArgument) and 1 for any other failure. Output that cannot
/// be written does not stop `body`, but counts as a failure at the end. Ctrl-C is handled as endOnInterrupt
/// says.
int runProgram(std::string_view name, const std::function<int()>& body);

/// For `endOnInterrupt`, as long as a program has not begun to train.
inline constexpr std::string_view kInterruptedBefore = "Interrupted before training; nothing was saved.";

/// From now on a signal that comes while no muster::Interrupt lives ends the program as exitOnInterrupt says,
/// with this sentence. Before the first call in runProgram's `body` it is "Interrupted."
void endOnInterrupt(std::string_view sentence);

/// The notice of a muster::Interrupt in a training whose model is not saved.
inline constexpr std::string_view kInterruptedUnsaved =
    "Interrupted: the current step is finished, then the training ends. The model is not saved, as no file "
    "is "
    "named for it. Interrupt again to quit at once.";

/// Ends an interrupt's life after the training, then calls `endOnInterrupt`: what comes next cannot be
/// stopped half-way. @return whether a stop was requested.
bool endInterrupt(std::optional<muster::Interrupt>& interrupt, std::string_view sentence);

}  // namespace example
