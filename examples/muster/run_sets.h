#pragma once

#include <boost/json/object.hpp>
#include <string>

namespace program {

/// Path of a strategy's options, whose names may contain dots.
inline constexpr std::string_view kStrategyPath = "training.strategy.";
inline constexpr std::string_view kStrategyName = "training.strategy.name";

/// The value of a text: parsed as JSON, or else the word itself.
boost::json::value valueOf(const std::string& text);

/// Sets a field of a run file. A new `data.type` drops the fields of the old one, and a new strategy's name
/// the options of the old one. @param set  for example "training.workers=4".
/// @throws InvalidArgument for an invalid path.
void applySet(boost::json::object& run, const std::string& set);

}  // namespace program
