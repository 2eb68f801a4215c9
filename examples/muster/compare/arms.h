#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "examples/muster/compare/base_run.h"
#include "muster/core/comparison/comparison_grid.h"

namespace comparing {

/// Reads the arms of a text, whose settings are as for --set: words with spaces between them, after a name
/// and a colon if it has one.
///
///     averaging every=10                          a strategy, and fields by short names (BaseRun::pathOf)
///     slow: diloco every={50,100} workers={2,4}   four arms: all combinations of what is in braces
///     joined                                      one worker on the batches of all workers joined
///     wide: network.layers[0].units=512           any field by its path
///
/// @param by  what gave the text, for messages.
/// @throws InvalidArgument that quotes the text.
std::vector<muster::ComparisonArm> parseArms(std::string_view text, const BaseRun& base,
                                             std::string_view by = "--arm");

/// The combinations of values in braces: `a={1,2} b={3,4}` gives four texts, the last one varying first.
/// A brace that begins with a quote is JSON, and stays as it is. @throws InvalidArgument beyond 1000 texts.
std::vector<std::string> expandBraces(std::string_view text);

/// Splits at spaces that are not inside of quotes, braces or brackets.
std::vector<std::string> wordsOf(std::string_view text);

}  // namespace comparing
