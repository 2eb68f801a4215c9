#pragma once

#include <boost/json/value.hpp>
#include <optional>
#include <span>
#include <string>

#include "tests/fuzz/target.h"

namespace muster::fuzz {

/// Changes one place of a JSON value: a hostile number, a value of another type, a part left out, repeated,
/// exchanged, renamed or nested deeply.
/// @param donors  values whose parts may be inserted.
void mutateJson(boost::json::value& value, Draw& draw, std::span<const boost::json::value> donors = {});

std::optional<boost::json::value> jsonIn(std::string_view text);

/// Mutates a JSON text several times; text that is not JSON byte by byte.
std::string mutateJsonText(std::string_view text, Draw& draw,
                           std::span<const boost::json::value> donors = {});

/// Mutates one line of a text with a JSON value in each, or leaves out, repeats or exchanges lines.
std::string mutateJsonLines(std::string_view text, Draw& draw);

}  // namespace muster::fuzz
