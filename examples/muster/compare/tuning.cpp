#include "examples/muster/compare/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "muster/core/base/error.h"

namespace comparing {
namespace {

using muster::InvalidArgument;
using muster::require;

std::string nameOf(std::string_view tune) {
  return std::string(tune.substr(0, tune.find('=')));
}

/// The path of the field in the run of an arm; "" if that arm keeps its own value.
std::string tunedPath(const Arm& arm, const std::string& tune, const BaseRun& base) try {
  const auto path = base.pathOf(nameOf(tune), base.run(arm.sets).training.strategy);
  const bool own = std::ranges::any_of(arm.sets, [&](const std::string& set) {
    return set.starts_with(path + "=") || set.starts_with(path + ".");
  });
  return own ? "" : path;
} catch (const InvalidArgument&) {  // an option of other strategies
  return "";
}

}  // namespace

std::vector<Choice> choicesOf(const Arm& arm, const std::vector<std::string>& tune, const BaseRun& base) {
  std::vector<Choice> choices{{}};
  bool any = false;
  for (const auto& one : tune) {
    const auto path = tunedPath(arm, one, base);
    if (path.empty()) continue;
    any = true;
    const auto name = nameOf(one);
    std::vector<Choice> more;
    for (const auto& choice : choices)
      for (const auto& value : expandBraces(fmt::format("{{{}}}", one.substr(name.size() + 1)))) {
        more.push_back(choice);
        more.back().text += fmt::format("{}{}={}", choice.text.empty() ? "" : " ", name, value);
        more.back().sets.push_back(fmt::format("{}={}", path, value));
      }
    choices = std::move(more);
  }
  return any ? choices : std::vector<Choice>{};
}

void checkTune(const std::vector<std::string>& tune, const std::vector<Arm>& arms, const BaseRun& base) {
  for (const auto& one : tune) {
    const auto equals = one.find('=');
    require(equals != one.npos && equals > 0 && one.find(',', equals) != one.npos,
            "--tune {}: expected a field and its values, as in learningRate=0.01,0.03,0.1", one);
    if (std::ranges::any_of(arms, [&](const Arm& arm) { return !tunedPath(arm, one, base).empty(); }))
      continue;
    base.pathOf(nameOf(one), base.run(arms.front().sets).training.strategy);  // says what is there
    throw InvalidArgument(fmt::format("--tune {}: every arm sets {} itself", one, nameOf(one)));
  }
  for (const auto& arm : arms)
    for (const auto& choice : choicesOf(arm, tune, base)) {
      auto sets = arm.sets;
      sets.insert(sets.end(), choice.sets.begin(), choice.sets.end());
      base.run(sets);
    }
}

bool Tuned::failed() const {
  return std::ranges::none_of(losses, [](double loss) { return std::isfinite(loss); });
}

Tuned choose(const Arm& arm, std::vector<Choice> choices, const std::vector<const RunRecord*>& runs) {
  Tuned tuned{.arm = arm.name, .choices = std::move(choices), .losses = {}};
  for (const auto* run : runs) {
    const double loss = run->failed() ? std::numeric_limits<double>::infinity() : run->end().loss;
    tuned.losses.push_back(std::isfinite(loss) ? loss : std::numeric_limits<double>::infinity());
    if (!run->points.empty()) tuned.seconds += run->end().seconds;
  }
  tuned.best = static_cast<std::size_t>(std::ranges::min_element(tuned.losses) - tuned.losses.begin());
  return tuned;
}

}  // namespace comparing
