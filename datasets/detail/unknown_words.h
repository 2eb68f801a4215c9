#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/data/input_description.h"
#include "muster/datasets/table.h"

namespace muster::detail {

/// Whether two words differ in capitals alone, in blanks, "_" and "-" beside a letter between other
/// characters, and in whether a letter of Latin-1 and its mark are one character: "T-shirt" and "tshirt", but
/// not "A-" and "A", nor "1-9" and "19".
bool looksLike(std::string_view one, std::string_view other);

/// A word in quotes, with the known one that looks like it.
std::string withTwin(std::string_view word, const std::vector<std::string>& known);

/// Whether a cell of a column of numbers or dates is one, or missing.
bool isReadable(const ColumnDescription& column, std::string_view cell);

/// Logs a line for each column with words that a model has no feature for, and with known words that look
/// like them; and a warning for each column of numbers or dates with other values, which count as missing,
/// and for each column without any value.
/// @param rows  to count; whether any has the unit of a column, all rows of the table say.
void logUnknownWords(const InputDescription& description, const Table& table,
                     std::span<const std::int64_t> rows);
/// As above, of all rows.
void logUnknownWords(const InputDescription& description, const Table& table);

/// The warnings of other values alone.
void logStrayValues(const InputDescription& description, const Table& table,
                    std::span<const std::int64_t> rows);

}  // namespace muster::detail
