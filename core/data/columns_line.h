#pragma once

#include <string>

#include "muster/core/data/input_description.h"

namespace muster {

/// The columns that a network reads and those that it does not, with the reasons; "" without columns.
std::string columnsLine(const InputDescription& description);

}  // namespace muster
