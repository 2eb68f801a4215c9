#pragma once

#include "tests/fuzz/target.h"

namespace muster::fuzz {

/// An input of the fuzzer: the first byte selects the program (programs.h), the others are its arguments,
/// separated by zeros.
Bytes line(char program, const std::vector<std::string>& arguments);
/// The arguments in what follows the first byte.
std::vector<std::string> argumentsIn(std::string_view text);

/// Valid lines; the first of a program is a short one.
const std::vector<Bytes>& validLines();

/// Values that options may reject.
const std::vector<std::string>& hostileTexts();

/// Input `number` of those with one option at each hostile value, with each two options of a program, and
/// with each option of each averaging rule at each hostile value; nothing after the last.
std::optional<Bytes> commandLineSweep(std::size_t number);

}  // namespace muster::fuzz
