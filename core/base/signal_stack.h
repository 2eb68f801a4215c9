#pragma once

namespace muster {

/// Gives the calling thread a stack for signal handlers that ask for one (SA_ONSTACK), unless it has one;
/// until the thread ends. Does nothing if the system refuses the memory. Threads that compute call it: inside
/// oneDNN's matrix products the stack pointer points into a buffer, and a handler on the thread's own stack
/// would overwrite memory of the program. Source: oneDNN's issue 4845.
void useSignalStack() noexcept;

}  // namespace muster
