#pragma once

#include <boost/json/value.hpp>

#include "tests/fuzz/target.h"
#include "tests/fuzz/vocabulary.h"

namespace muster::fuzz {

/// Changes one place of a JSON value: a hostile number, a value of another type, a part left out, repeated,
/// exchanged, renamed or nested deeply.
/// @param vocabulary  what a field may be replaced by.
void mutateJson(boost::json::value& value, Draw& draw, const Vocabulary& vocabulary = {});

std::optional<boost::json::value> jsonIn(std::string_view text);

/// Mutates a JSON text several times; text that is not JSON byte by byte.
std::string mutateJsonText(std::string_view text, Draw& draw, const Vocabulary& vocabulary = {});

/// Mutates one line of a text with a JSON value in each, or leaves out, repeats or exchanges lines.
std::string mutateJsonLines(std::string_view text, Draw& draw);

}  // namespace muster::fuzz
