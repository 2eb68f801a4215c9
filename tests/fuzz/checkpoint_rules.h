#pragma once

#include <vector>

#include "muster/parallel/strategies/any_strategy.h"

namespace muster::fuzz {

/// Every rule of the library that has a name, merging often.
std::vector<AnyStrategy> namedRules(int workers);

/// These for two workers, and rules with options that add state to checkpoints.
std::vector<AnyStrategy> checkpointRules();

}  // namespace muster::fuzz
