#pragma once

#include <boost/json/object.hpp>
#include <span>
#include <string_view>

namespace muster::detail {

/// The range of a number in a schema, as an interval: "[0, 1)", or "[1, )" without a largest value.
struct FieldRange {
  std::string_view field;  ///< its name, or PARENT.NAME where fields of one name differ
  std::string_view range;
};

/// Gives properties their ranges, and those of the objects among them; of a list each number has it.
/// @param parent  the name of the object, or of its type.
void setRanges(boost::json::object& properties, std::string_view parent, std::span<const FieldRange> ranges);

/// The ranges in networks: of their options, layers, initialisers, updaters and schedules. The parent is the
/// type or the name.
std::span<const FieldRange> networkRanges();

}  // namespace muster::detail
