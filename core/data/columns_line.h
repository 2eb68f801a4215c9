#pragma once

#include <string>

#include "muster/core/data/input_description.h"

namespace muster {

/// The columns that a network reads and those that it does not, with the reasons; "" without columns. Names
/// with commas are in quotes.
std::string columnsLine(const InputDescription& description);

}  // namespace muster
