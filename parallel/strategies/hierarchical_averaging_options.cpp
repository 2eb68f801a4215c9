#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "muster/core/base/error.h"
#include "muster/parallel/strategies/hierarchical_averaging.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/strategies/option_fields.h"
#include "muster/parallel/strategies/period.h"

namespace muster {
namespace {

/// @param item  the level that the number is of.
template <typename T>
void readNumber(std::string_view text, std::string_view item, T& number) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  require(error == std::errc{} && rest == text.data() + text.size(),
          "levels: expected period:workers, as in 4:2,16:all, got \"{}\"", item);
}

std::vector<HierarchicalAveraging::Level> levelsFrom(std::string_view text) {
  std::vector<HierarchicalAveraging::Level> levels;
  while (!text.empty()) {
    const auto item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const auto colon = std::min(item.find(':'), item.size());
    auto& level = levels.emplace_back();
    readNumber(item.substr(0, colon), item, level.period);
    const auto group = item.substr(std::min(colon + 1, item.size()));
    if (group != "all") readNumber(group, item, level.group);
  }
  return levels;
}

}  // namespace

void HierarchicalAveraging::validate() const {
  require(!levels.empty(), "hierarchical averaging: there are no levels");
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const auto [period, group] = levels[l];
    detail::requireIterations("hierarchical averaging: a period", period);
    require(l == 0 || period >= levels[l - 1].period,
            "hierarchical averaging: periods must ascend, got {} after {}", period,
            l == 0 ? 0 : levels[l - 1].period);
    require(group >= 0, "hierarchical averaging: a group must have at least 1 worker (0: all), got {}",
            group);
  }
  muster::validate(updaterState);
  muster::validate(codec, "hierarchical averaging");
  if (levels.size() > 1) requireSentToSome(codec, "hierarchical averaging");
}

void HierarchicalAveraging::fields(Fields& f) {
  std::string text;
  for (const auto& [period, group] : levels)
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", period,
                        group == 0 ? "all" : fmt::format("{}", group));
  f.field("levels", text, "period:group for each level, as in 4:2,16:all; the last merges all");
  levels = levelsFrom(text);
  f.field("updaterState", updaterState, detail::kUpdaterStateField);
  codecFields(f, codec);
}

std::vector<NamedStrategy> HierarchicalAveraging::named(int workers) {
  HierarchicalAveraging halves;
  if (workers % 2 == 0) halves.levels = {{.period = 1, .group = workers / 2}, {.period = 4}};
  return {{"hierarchical", "averages in groups that grow: each level has a period and a number of workers",
           "PyTorch", halves}};
}

}  // namespace muster
