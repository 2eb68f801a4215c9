#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace muster {

/// The word of `known` that is nearest to `word` by Levenshtein's distance, the first of equal ones; nothing
/// if the distance is more than a third (rounded up) of the longer word's length: then `word` is no
/// misspelling of any of them.
std::optional<std::string> nearestWord(std::string_view word, std::span<const std::string> known);

/// The end of a message about a word that there is not: "; the nearest is rate", or "" if none is near.
std::string nearestHint(std::string_view word, std::span<const std::string> known);

/// As above, with all that there are: "; the nearest is rate, of every, rate", or "; there are every, rate".
std::string nearestOfHint(std::string_view word, std::span<const std::string> known);

}  // namespace muster
