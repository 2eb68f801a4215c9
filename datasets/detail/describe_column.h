#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "muster/core/data/input_description.h"
#include "muster/datasets/table.h"

namespace muster::detail {

/// How a column becomes features, or why not; `describeTable` documents the rules.
/// @param dateOrder  of the parts of dates; nothing: found out.
/// @param named  whether the column was asked for by its name: it may count the rows.
std::variant<ColumnDescription, OmittedColumn> describeColumn(const Table& table, std::size_t column,
                                                              std::span<const std::int64_t> rows,
                                                              std::optional<DateOrder> dateOrder = {},
                                                              bool named = false);

/// Whether a column was left out because its rows have one value or none: other rows may have more.
bool hasFewValues(const OmittedColumn& column);

/// Whether a column was left out because its numbers count the rows.
bool isCounter(const OmittedColumn& column);

/// @throws FileError if float32 rounds all of a column's numbers to 0, or nearly so.
void requireNotTiny(const Table& table, std::string_view column, std::span<const double> numbers);

}  // namespace muster::detail
