#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace example {

/// Rows of cells, the first row the headings.
using Cells = std::vector<std::vector<std::string>>;

/// Lays cells out in columns, two spaces between them: the first to the left, the others, numbers, to the
/// right. Cells are UTF-8 of characters one column wide. Ends with a newline.
std::string textTable(const Cells& rows);

/// The same as a table in Markdown.
std::string markdownTable(const Cells& rows);

/// Breaks a sentence between words into lines of at most `columns`, those after the first indented by two.
/// Ends with a newline.
std::string wrapped(const std::string& sentence, std::size_t columns);

}  // namespace example
