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

/// The words of `a,b,c`; none of an empty text.
/// @throws InvalidArgument naming the option for an empty word, or one that stands there twice.
std::vector<std::string> parseWords(std::string_view option, std::string_view text);

/// Whole numbers, as above. @throws InvalidArgument also for one that is out of range or no number.
std::vector<std::int64_t> parseNumbers(std::string_view option, std::string_view text, std::int64_t least,
                                       std::int64_t most);

/// Updaters as in `nesterovs,adam:0.002`, where there is no learning rate with the usual one: 0.001 for adam,
/// adamw and rmsprop, and otherwise 0.01.
std::vector<UpdaterChoice> parseUpdaters(std::string_view option, std::string_view text);

/// The updaters as `parseUpdaters` reads them.
std::vector<std::string> updaterTexts(const std::vector<UpdaterChoice>& updaters);

/// Values of an enumeration by name, of those allowed. @throws InvalidArgument naming these.
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
