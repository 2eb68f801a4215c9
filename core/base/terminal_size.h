#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster {

/// The size of a terminal, in characters.
struct TerminalSize {
  int columns = 80, rows = 24;
};

/// The size of the terminal that standard error is; the default if it does not say; empty if standard error is
/// no terminal.
std::optional<TerminalSize> terminalSize();

/// A sentence for standard error, with a newline: in lines of the terminal's width, elsewhere in one.
std::string linesForTerminal(std::string_view sentence);

}  // namespace muster
