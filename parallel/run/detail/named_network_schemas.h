#pragma once

#include <boost/json/array.hpp>

#include "muster/core/io/detail/schema_writer.h"

namespace muster::detail {

/// The schema of a named network: the name, or an object with the name and its options.
/// @param families  as of SchemaWriter.
boost::json::array namedNetworkSchemas(const SchemaFamilies& families);

}  // namespace muster::detail
