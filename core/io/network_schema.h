#pragma once

#include <boost/json/object.hpp>

namespace muster {

/// JSON Schema (draft 2020-12) of the networks that `networkFromJson` reads.
struct NetworkSchema {
  boost::json::object network;
  /// To be put under "$defs" of the document, to which `network` refers.
  boost::json::object definitions;
};

/// It has all layers, updaters, schedules and initialisers of the library, each with its fields.
NetworkSchema networkSchema();

}  // namespace muster
