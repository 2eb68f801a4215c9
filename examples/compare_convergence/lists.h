#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "examples/compare_convergence/grid.h"
#include "muster/core/base/error.h"

namespace convergence {

/// The words of `a,b,c`; none for an empty text.
/// @throws InvalidArgument naming the option for an empty or a repeated word.
std::vector<std::string> parseWords(std::string_view option, std::string_view text);

/// Whether a text begins as a number does: with a digit, perhaps after a sign or a point.
bool beginsNumber(std::string_view text);

/// Reads strategies such as `gossip,asynchronous:rate=0.5:speeds=1,0.5`. A number or an option after a comma
/// belongs to the strategy before it. @throws InvalidArgument as parseWords.
std::vector<std::string> parseStrategies(std::string_view option, std::string_view text);

/// Reads whole numbers. @throws InvalidArgument as parseWords, and for a word that is no number or out of
/// range.
std::vector<std::int64_t> parseNumbers(std::string_view option, std::string_view text, std::int64_t least,
                                       std::int64_t most);

/// Reads updaters such as `nesterovs,adam:0.002`. The default learning rate is 0.001 for adam, adamw and
/// rmsprop, 0.01 for the others.
std::vector<UpdaterChoice> parseUpdaters(std::string_view option, std::string_view text);

/// Writes updaters so that `parseUpdaters` can read them.
std::vector<std::string> updaterTexts(const std::vector<UpdaterChoice>& updaters);

/// Reads values of an enumeration by name. @throws InvalidArgument naming the allowed ones.
template <typename E>
std::vector<E> parseChoices(std::string_view option, std::string_view text, const std::vector<E>& allowed) {
  std::vector<E> values;
  for (const auto& word : parseWords(option, text)) {
    const auto found = std::ranges::find_if(allowed, [&](E value) { return muster::nameOf(value) == word; });
    std::vector<std::string_view> names;
    for (const E value : allowed) names.push_back(muster::nameOf(value));
    muster::require(found != allowed.end(), "--{}: there is no \"{}\"; there are {}", option, word,
                    fmt::join(names, ", "));
    values.push_back(*found);
  }
  return values;
}

}  // namespace convergence
