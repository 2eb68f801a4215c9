#pragma once

#include <string>

#include "muster/core/comparison/comparison.h"

namespace muster::detail {

/// What the comparison says, a sentence: which arms differ from the baseline by more than chance.
std::string conclusionOf(const Comparison& comparison, const ComparisonSummary& summary);

}  // namespace muster::detail
