#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace comparing {

/// Rows of cells, the first row the headings.
using Cells = std::vector<std::vector<std::string>>;

/// Formats cells in columns separated by two spaces: the first column left-aligned, the others, which are
/// numbers, right-aligned. Cells are UTF-8 with characters one column wide. Ends with a newline.
std::string textTable(const Cells& rows);

/// The same as a table in Markdown.
std::string markdownTable(const Cells& rows);

/// Breaks a sentence between words into lines of at most `columns`, those after the first indented by two.
/// Ends with a newline.
std::string wrapped(const std::string& sentence, std::size_t columns);

}  // namespace comparing
