#pragma once

#include <boost/json/object.hpp>
#include <span>
#include <string>
#include <string_view>

namespace muster::detail {

/// Path of a strategy's options, whose names may contain dots.
inline constexpr std::string_view kStrategyPath = "training.strategy.";
inline constexpr std::string_view kStrategyName = "training.strategy.name";

/// Where a number or a word stands for an object: the path of the object, and the field in it that is meant.
struct ShortForm {
  std::string_view path, field;
};
/// `training.strategy` also may be a name; layers, updaters and schedules have short forms of their own.
inline constexpr ShortForm kShortForms[] = {{kStrategyPath.substr(0, kStrategyPath.size() - 1), "every"},
                                            {"listeners.checkpoints", "directory"},
                                            {"listeners.checkpoints.best", "monitor"},
                                            {"listeners.earlyStopping", "patience"},
                                            {"listeners.reduceOnPlateau", "patience"}};

/// Replaces the numbers and words that stand for objects in a run file (`kShortForms`) by these objects.
void expandShortForms(boost::json::object& run);

/// The value of a text: parsed as JSON, or else the word itself.
boost::json::value jsonOrWord(const std::string& text);

/// The path of the only field with this last part, or with this other name, as `lr`; "" if there is none.
std::string fieldNamed(std::string_view name);

/// The path of an override: of "training.workers=4" it is "training.workers".
std::string_view keyOf(std::string_view text);

/// Sets fields of a run file, in order: of two that set the same, the later one wins. Only fields that decide
/// which others there are (`data.type`, `training.strategy.name`, `network.name`, and the `type` of an
/// updater, schedule or layer) come before those others, which they may drop.
/// @param overrides  each for example "training.workers=4".  @throws as applyOverride.
void applyOverrides(boost::json::object& run, std::span<const std::string> overrides);

/// Sets a field of a run file. A new `data.type` drops the fields of the old one, and so do the others that
/// `applyOverrides` names. `null` takes a field out of the file, and a list may have its elements with commas
/// between them, as in `data.columns=size,colour`. @param text  for example "training.workers=4".
/// @throws InvalidArgument that names the path, if it is invalid.
void applyOverride(boost::json::object& run, const std::string& text);

}  // namespace muster::detail
