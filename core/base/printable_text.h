#pragma once

#include <string>
#include <string_view>

namespace muster {

/// A text as a terminal may be given it. Errors and log lines quote files, whose words could be commands to
/// the terminal: control characters and what is not UTF-8 become "\x1b", and a text of more than 4,000 bytes
/// loses its end.
std::string printableText(std::string_view text);

/// As printableText, but keeps newlines and tabs and does not shorten.
std::string printableLines(std::string_view text);

}  // namespace muster
