#pragma once

namespace muster {

/// Lets the C library load the unwinder now. It would load it when an exception first leaves one of its own
/// functions (std::call_once, a thread that is cancelled), and ends the process if memory has run out by
/// then.
void loadUnwinder() noexcept;

}  // namespace muster
