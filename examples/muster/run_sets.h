#pragma once

#include <boost/json/object.hpp>
#include <string>

namespace program {

/// Where a strategy's options are; their names have dots, too.
inline constexpr std::string_view kStrategyPath = "training.strategy.";

/// The value of a text: JSON, or else the word itself.
boost::json::value valueOf(const std::string& text);

/// Replaces a field of a run file, or makes it. Another `data.type` drops the fields of the old one. @param
/// set  as in "training.workers=4".
/// @throws InvalidArgument for what is no path of the file.
void applySet(boost::json::object& run, const std::string& set);

}  // namespace program
