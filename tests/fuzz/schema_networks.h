#pragma once

#include "tests/fuzz/json_changes.h"

namespace muster::fuzz {

/// Small valid networks as JSON: one for each type of layer, vertex, updater, schedule and initialiser in the
/// library's schema, with all fields, and those of networks.h.
/// @throws std::logic_error naming a type for which none was found.
const std::vector<boost::json::value>& networkDocuments();

/// What the fields of these networks may be.
const Vocabulary& networkVocabulary();

/// Their changes.
const JsonSweep& networkSweep();

}  // namespace muster::fuzz
