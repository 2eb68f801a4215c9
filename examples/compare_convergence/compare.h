#pragma once

namespace convergence {

/// The whole program, for its own `main` and for `muster compare`. @return the exit status.
/// @throws the errors that example::runProgram handles.
int compare(int argc, const char* const* argv);

}  // namespace convergence
