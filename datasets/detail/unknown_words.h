#pragma once

#include <string_view>

#include "muster/core/data/input_description.h"
#include "muster/datasets/table.h"

namespace muster::detail {

/// Whether two words differ in capitals, blanks, "_" and "-" alone.
bool looksLike(std::string_view one, std::string_view other);

/// Logs a line for each column with words that a model has no feature for, and with known words that look
/// like them; and for each column of numbers with words, which count as missing.
void logUnknownWords(const InputDescription& description, const Table& table);

}  // namespace muster::detail
