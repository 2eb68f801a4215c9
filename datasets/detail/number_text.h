#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "muster/core/data/input_description.h"
#include "muster/datasets/table.h"

namespace muster::detail {

/// Whether so many of a column's values are enough for a column of numbers or dates: nine in ten.
bool nearlyAll(std::int64_t some, std::int64_t all);

/// How all numbers of a column are written, if they have a unit or commas between thousands.
///
/// A unit is a currency sign before the number, or up to 8 bytes after it, as in "0.3%", "12 kg" and "50 m2".
/// Nine in ten values or more are numbers with one unit or plain ones, the others words. Logs how it is read.
/// @param words  [cell] rows with this value, without missing ones.
/// @return nothing for a column of plain numbers, of words, or of several units, which is logged.
/// @throws FileError for decimal commas, as "1,5", and where those of "92,000" may be, because the table's
///         separator is no comma.
std::optional<NumberText> numberTextOf(const Table& table, std::size_t column,
                                       const std::map<std::string_view, std::int64_t>& words);

}  // namespace muster::detail
