#include "muster/parallel/run/detail/field_path.h"

#include <algorithm>
#include <charconv>

#include "muster/core/base/error.h"
#include "muster/parallel/run/detail/run_overrides.h"

namespace muster::detail {
namespace {

void requirePath(bool valid, std::string_view path) {
  require(valid, "{}: expected a path as in network.layers[2].outChannels", path);
}

Step stepOf(std::string_view text, std::string_view path) {
  Step step;
  const auto bracket = std::min(text.find('['), text.size());
  step.name = text.substr(0, bracket);
  text.remove_prefix(bracket);
  while (!text.empty()) {
    std::size_t place = 0;
    const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), place);
    const bool closed =
        error == std::errc() && end != text.data() + text.size() && *end == ']' && text[0] == '[';
    requirePath(closed, path);
    text.remove_prefix(static_cast<std::size_t>(end + 1 - text.data()));
    step.places.push_back(place);
  }
  requirePath(!step.name.empty(), path);
  return step;
}

}  // namespace

std::vector<Step> stepsOf(std::string_view path) {
  const std::string_view whole = path;
  requirePath(!path.ends_with('.'), path);
  std::vector<Step> steps;
  while (!path.empty()) {
    const bool option = whole.starts_with(kStrategyPath) && steps.size() == 2;
    const auto dot = option ? path.size() : std::min(path.find('.'), path.size());
    steps.push_back(option ? Step{std::string(path), {}} : stepOf(path.substr(0, dot), whole));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return steps;
}

}  // namespace muster::detail
