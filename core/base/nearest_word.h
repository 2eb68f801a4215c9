#pragma once

#include <span>
#include <string>
#include <string_view>

namespace muster {

/// The word of `known` that is nearest to `word` by Levenshtein's distance, the first of equal ones; for
/// messages about a word that there is not. @throws InvalidArgument if `known` is empty.
const std::string& nearestWord(std::string_view word, std::span<const std::string> known);

}  // namespace muster
