#pragma once

#include <boost/json/object.hpp>

#include "muster/core/io/detail/schema_writer.h"

namespace muster::detail {

/// JSON Schema (draft 2020-12) of the networks that `networkFromJson` reads.
struct NetworkSchema {
  boost::json::object network;
  /// To be put under "$defs" of the document, to which `network` refers.
  boost::json::object definitions;
  /// The updaters, schedules and initialisers: for a SchemaWriter whose fields refer to the definitions.
  SchemaFamilies families;
};

/// It has all layers, updaters, schedules and initialisers of the library, each with its fields.
NetworkSchema networkSchema();

}  // namespace muster::detail
