#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "muster/core/base/error.h"

namespace muster {

/// The word of `known` that is nearest to `word`: the shortest one that begins with it, if it has three
/// letters or more; else by Levenshtein's distance, in which two neighbours that have changed places are one
/// change. Capitals count as small letters; of equally near words the one with fewer changes of capitals, or
/// the first. Nothing if none begins with it and the distance is more than a third (rounded up) of the longer
/// word's length, or all of it: then `word` is no misspelling of any of them.
std::optional<std::string> nearestWord(std::string_view word, std::span<const std::string> known);

/// The end of a message about a word that there is not: "; the nearest is rate", or "" if none is near.
std::string nearestHint(std::string_view word, std::span<const std::string> known);

/// As above, of words with commas between them, as in "adam, sgd".
std::string nearestInListHint(std::string_view word, std::string_view known);

/// `registry.make(type)`, whose error about a type that there is not also has the nearest one.
template <typename Registry>
auto makeByName(const Registry& registry, std::string_view type) try {
  return registry.make(type);
} catch (const InvalidArgument& error) {
  if (registry.contains(type)) throw;
  throw InvalidArgument(error.what() + nearestInListHint(type, registry.names()));
}

/// As nearestHint, with all that there are: "; the nearest is rate, of every, rate", or "; there are every,
/// rate".
std::string nearestOfHint(std::string_view word, std::span<const std::string> known);

}  // namespace muster
