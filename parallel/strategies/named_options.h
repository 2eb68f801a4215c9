#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/parallel/strategies/any_strategy.h"

// The options of named strategies: their texts, for named_strategy.cpp. See optionsOf for a list of them.

namespace muster {

/// Replaces a strategy's options by those of a text, as in "rate=0.7,momentum=0.9,every=100"; "": none.
/// @throws InvalidArgument for an unknown option, with the nearest known one, and for a value of another kind
///         or out of range.
void setOptions(AnyStrategy& strategy, std::string_view options);

/// Throws InvalidArgument, as in `there is no option "rat"; the nearest is rate, of every, momentum, rate`.
[[noreturn]] void refuseUnknown(std::string_view what, std::string_view word,
                                const std::vector<std::string>& known);

/// As in "keep or reset".
std::string orList(const std::vector<std::string>& words);

}  // namespace muster
