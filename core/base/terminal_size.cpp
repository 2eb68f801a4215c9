#include "muster/core/base/terminal_size.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "muster/core/base/text_table.h"
#include "muster/core/base/utf8.h"

namespace muster {

std::optional<TerminalSize> terminalSize() {
  if (::isatty(STDERR_FILENO) == 0) return std::nullopt;
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
  return known ? TerminalSize{size.ws_col, size.ws_row} : TerminalSize{};
}

std::string linesForTerminal(std::string_view sentence) {
  const auto size = terminalSize();
  const auto columns = static_cast<std::size_t>(size.value_or(TerminalSize()).columns);
  if (!size || utf8Length(sentence) <= columns) return std::string(sentence) + "\n";
  return wrappedText(sentence, columns);
}

}  // namespace muster
