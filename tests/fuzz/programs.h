#pragma once

#include "tests/fuzz/target.h"

namespace muster::fuzz {

/// Programs by a letter: e for the small examples, m for the options of muster train, and u for values of its
/// `--set`.
inline constexpr std::string_view kPrograms = "emu";

/// Reads a program's command line; `a`: the arms of muster compare. @throws std::logic_error if it accepts
/// values that it must not.
void readLine(char program, int argc, const char* const* argv);

/// The run file to which muster's arguments apply.
std::string runFileText();

/// An input of the fuzzer: the first byte selects the program, the others are its arguments, separated by
/// zeros.
Bytes line(char program, const std::vector<std::string>& arguments);
/// The arguments of an input.
std::vector<std::string> argumentsIn(ByteSpan bytes);

/// Valid lines; the first of a program is a short one.
const std::vector<Bytes>& validLines();

}  // namespace muster::fuzz
