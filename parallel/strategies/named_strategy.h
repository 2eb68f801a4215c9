#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/parallel/strategies/any_strategy.h"

namespace muster {

/// A strategy that command lines and files can name: a rule, or a preset of a rule. An option struct of the
/// library lists its own in `static std::vector<NamedStrategy> named(int workers)`, and its options in
/// `void fields(Fields&)`.
struct NamedStrategy {
  std::string name;         ///< as in "diloco"
  std::string description;  ///< one line without a full stop
  std::string source;       ///< as in "Douillard et al. 2023"
  AnyStrategy options;      ///< its defaults
};

/// An option, as a table shows it. Options within another one have a path as their name: "period.alpha".
struct StrategyOption {
  std::string name;
  std::string preset;                   ///< its default
  std::string kind;                     ///< "number", "true or false", or the words that it may be
  std::string description;              ///< a phrase without a full stop
  std::vector<std::string> words = {};  ///< those of its kind
  std::string range = {};               ///< of a number or a list, as of Fields::describe; "": any
};

/// All strategies of the library, sorted by name. Some defaults depend on the number of workers.
std::vector<NamedStrategy> namedStrategies(int workers);

/// The strategy called `name`, with these options in place of its defaults.
/// @param options  as in "rate=0.7,momentum=0.9,every=100"; "": none. In a list, too, commas separate:
///                 "speeds=1,0.5,every=10".
/// @throws InvalidArgument for an unknown name or option, with the nearest known one, and for a value of
///         another kind or out of range.
AnyStrategy strategyNamed(std::string_view name, std::string_view options, int workers);

/// Replaces a strategy's options by those of a text, as strategyNamed does.
void setOptions(AnyStrategy& strategy, std::string_view options);

/// The options that can be given by name.
std::vector<StrategyOption> optionsOf(AnyStrategy strategy);

/// A table of all strategies with their options, defaults and sources, for a terminal 110 columns wide.
std::string describeStrategies(int workers);

}  // namespace muster
