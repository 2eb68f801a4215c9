#include "examples/muster/compare/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "muster/core/base/error.h"
#include "muster/core/comparison/tuned_field.h"

namespace comparing {
namespace {

using muster::ComparisonArm;
using muster::InvalidArgument;
using muster::require;
using muster::TuningChoice;

std::string nameOf(std::string_view tune) {
  return muster::TunedField::of(tune).name;
}

/// @throws InvalidArgument for a text that is no field with values.
void checkValues(const std::string& tune, std::string_view by) {
  const auto field = muster::TunedField::of(tune);
  require(!field.name.empty() && !field.values.empty(),
          "{} {}: expected a field and its values, as in learningRate=0.01,0.03,0.1", by, tune);
  muster::TunedField before{.name = {}, .values = {}};
  for (const auto& value : field.values) {
    require(!before.has(value), "{} {}: {} is given twice", by, tune, value);
    before.values.push_back(value);
  }
}

/// The path of the field in the run of an arm; "" if that arm keeps its own value.
std::string tunedPath(const ComparisonArm& arm, const std::string& tune, const BaseRun& base) try {
  const auto path = base.pathOf(nameOf(tune), base.run(arm.settings).training.strategy);
  const bool own = std::ranges::any_of(arm.settings, [&](const std::string& set) {
    return set.starts_with(path + "=") || set.starts_with(path + ".");
  });
  return own ? "" : path;
} catch (const InvalidArgument&) {  // an option of other strategies
  return "";
}

/// @throws InvalidArgument for two texts that tune one field.
void requireDifferentFields(const std::vector<std::string>& tune, const ComparisonArm& arm,
                            const BaseRun& base, std::string_view by) {
  std::map<std::string, std::string> texts;  // by path
  for (const auto& one : tune)
    if (const auto path = tunedPath(arm, one, base); !path.empty()) {
      const auto [same, added] = texts.emplace(path, one);
      require(added, "{} {} and {} {}: both tune {}; give all its values at once", by, same->second, by, one,
              path);
    }
}

}  // namespace

std::vector<TuningChoice> choicesOf(const ComparisonArm& arm, const std::vector<std::string>& tune,
                                    const BaseRun& base) {
  std::vector<TuningChoice> choices{{}};
  bool any = false;
  for (const auto& one : tune) {
    const auto path = tunedPath(arm, one, base);
    if (path.empty()) continue;
    any = true;
    const auto field = muster::TunedField::of(one);
    std::vector<TuningChoice> more;
    for (const auto& choice : choices)
      for (const auto& value : field.values) {
        more.push_back(choice);
        more.back().text += fmt::format("{}{}={}", choice.text.empty() ? "" : " ", field.name, value);
        more.back().settings.push_back(fmt::format("{}={}", path, value));
      }
    choices = std::move(more);
  }
  return any ? choices : std::vector<TuningChoice>{};
}

std::vector<std::string> namedAs(const std::vector<std::string>& known, std::vector<std::string> tune,
                                 const std::vector<ComparisonArm>& arms, const BaseRun& base) {
  for (auto& one : tune)
    for (const auto& other : known)
      if (std::ranges::any_of(arms, [&](const ComparisonArm& arm) {
            const auto path = tunedPath(arm, one, base);
            return !path.empty() && path == tunedPath(arm, other, base);
          }))
        one = muster::TunedField{.name = nameOf(other), .values = muster::TunedField::of(one).values}.text();
  return tune;
}

void checkValues(const std::vector<std::string>& tune, bool several, std::string_view by) {
  for (const auto& one : tune) {
    checkValues(one, by);
    require(!several || muster::TunedField::of(one).values.size() > 1,
            "{} {}: there is one value, and tuning chooses among several, as in "
            "learningRate=0.01,0.03,0.1; an arm or --set gives a field a single value",
            by, one);
  }
}

void checkTune(const std::vector<std::string>& tune, const std::vector<ComparisonArm>& arms,
               const BaseRun& base, std::string_view by) {
  for (const auto& arm : arms) requireDifferentFields(tune, arm, base, by);
  for (const auto& one : tune) {
    if (std::ranges::any_of(arms,
                            [&](const ComparisonArm& arm) { return !tunedPath(arm, one, base).empty(); }))
      continue;
    base.pathOf(nameOf(one), base.run(arms.front().settings).training.strategy);  // says what is there
    throw InvalidArgument(fmt::format("{} {}: every arm sets {} itself", by, one, nameOf(one)));
  }
  for (const auto& arm : arms)
    for (const auto& choice : choicesOf(arm, tune, base)) {
      auto sets = arm.settings;
      sets.insert(sets.end(), choice.settings.begin(), choice.settings.end());
      try {
        base.run(sets);
      } catch (const InvalidArgument& error) {
        throw InvalidArgument(fmt::format("{} {}: {}", by, choice.text, error.what()));
      }
    }
}

}  // namespace comparing
