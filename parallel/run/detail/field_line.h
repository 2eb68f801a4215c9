#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "muster/parallel/run/detail/field_list.h"

namespace muster::detail {

/// A value of a schema as a word: a text without quotes, else its JSON.
std::string wordOf(const boost::json::value& value);

/// The field at `path` with this schema.
FieldLine lineOf(std::string path, const boost::json::object& schema);

}  // namespace muster::detail
