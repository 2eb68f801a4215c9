#include "muster/parallel/run/detail/field_path.h"

#include "tests/support/test.h"

using namespace muster;
using namespace muster::detail;

TEST_CASE("a path has a step for each field, with places in lists, and one for an option of a strategy") {
  const std::pair<const char*, const char*> cases[] = {
      {"format", "format,"},
      {"training.workers", "training, workers,"},
      {"network.layers[2].bias", "network, layers 2, bias,"},
      {"a[0][12]", "a 0 12,"},
      {"training.strategy.name", "training, strategy, name,"},
      {"training.strategy.period.until", "training, strategy, period.until,"},
      {"training.strategies.a.b", "training, strategies, a, b,"},
  };
  for (const auto& [path, expected] : cases) {
    std::string steps;
    for (const auto& [name, places] : stepsOf(path)) {
      steps += (steps.empty() ? "" : " ") + name;
      for (const auto place : places) steps += fmt::format(" {}", place);
      steps += ",";
    }
    CHECK(steps == expected);
  }
}

TEST_CASE("a path without a name, or with a place that is no number, is refused") {
  for (const std::string path : {"[1]", ".a", "a..b", "a.", "training.strategy.", "a[", "a[]", "a[x].b",
                                 "a[-1]", "a[1", "a[1]b", "a[99999999999999999999]"})
    CHECK_REFUSED(stepsOf(path), path + ": expected a path as in network.layers[2].outChannels");
}
