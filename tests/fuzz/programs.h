#pragma once

#include <string>
#include <string_view>

namespace muster::fuzz {

/// Programs by a letter: e for the small examples, m for the options of muster train, and u for values of its
/// `--set`.
inline constexpr std::string_view kPrograms = "emu";

/// Reads a program's command line; `a`: the arms of muster compare. @throws std::logic_error if it accepts
/// values that it must not.
void readLine(char program, int argc, const char* const* argv);

/// The run file to which muster's arguments apply.
std::string runFileText();

}  // namespace muster::fuzz
