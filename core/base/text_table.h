#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// Rows of cells, the first row the headings.
using Cells = std::vector<std::vector<std::string>>;

/// Formats cells in columns separated by two spaces: the first column left-aligned, the others, which are
/// numbers, right-aligned. Cells are UTF-8 with characters one column wide. Ends with a newline.
std::string textTable(const Cells& rows);

/// The same as a table in Markdown.
std::string markdownTable(const Cells& rows);

/// The same as CSV: commas, `csvField` for each cell, a newline after each row.
std::string csvTable(const Cells& rows);
/// A field of a CSV file, in quotes if it holds a comma, a quote or a line's end. Source: RFC 4180.
std::string csvField(std::string_view text);
/// The fields of a line of CSV, also with blanks before quotes: `c, "a, b"` has the fields `c` and `a, b`.
std::vector<std::string> csvFields(std::string_view line);
/// A list to read in a sentence: "a, b", with quotes as in CSV around texts that have commas.
std::string csvList(std::span<const std::string> texts);

/// Breaks a sentence between words into lines of at most `columns`, those after the first indented by two.
/// What is in quotes or brackets ("my file.csv", {"workers": 2}) is one word, so that it can be copied; a
/// longer word has a line of its own. Ends with a newline.
std::string wrappedText(std::string_view sentence, std::size_t columns);

}  // namespace muster
