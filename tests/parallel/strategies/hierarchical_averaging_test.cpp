#include "muster/parallel/strategies/hierarchical_averaging.h"

#include "muster/parallel/strategies/named_strategy.h"
#include "tests/parallel/rule_wrapper.h"
#include "tests/support/on_merge.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("groups of two merged every iteration, and all every second one, equal values worked out by hand") {
  // p = 0, learning rate 0.5. Neighbours, {0, 1} and {2, 3}: replicas 1, 3, 5, 7, and the groups' means are 2
  // and 6, the user's model is 4. Then 2, 4, 8, 10, and all become 6. Then 4, 6, 8, 10, whose groups' means
  // are 5 and 9: the user's model is 7, and so are all replicas at the epoch's end, before which no batch
  // follows. The builder's groups hold the workers of one node, {0, 2} and {1, 3}, as over nodes: replicas 1,
  // 3, 5, 7 become 3, 5, 3, 5. Then 2.5, 5.5, 6.5, 9.5, and all become 6. Then 4, 6, 8, 10, which become 6,
  // 8, 6, 8, and all 7 at the epoch's end. Merges within a node do not change the user's model.
  for (const auto& [groups, devices] : {std::pair{1, 0}, {1, 1}, {1, 2}, {1, 4}, {2, 0}}) {
    INFO("groups ", groups, ", devices ", devices);
    ToyModel model({.training = {.updater = Sgd{.learningRate = 0.5}}});
    std::vector<float> models;
    std::vector<double> merged;
    const auto looking = onMerge([&](const MergeEvent& event) {
      REQUIRE(event.values.size() == 1);
      CHECK(event.values[0].name == "group");
      merged.push_back(event.values[0].value);
      event.trainer.model();
      models.push_back(model.parameters()[0]);
    });
    auto data = ToyIterator::ofValues({2, 6, 10, 14, 2, 6, 10, 14, 2, 6, 10, 14});
    builderOf(model, 4, HierarchicalAveraging{.levels = {{.period = 1, .group = 2}, {.period = 2}}})
        .groups(groups)
        .internals({.pretendedDevices = devices})
        .listeners({looking})
        .build()
        .fit(data);
    CHECK(models == (groups == 1 ? std::vector<float>{4, 6, 7, 7} : std::vector<float>{0, 6, 6, 7}));
    CHECK(merged == std::vector<double>{2, 4, 2, 4});
    std::vector<float> before;
    for (const auto& step : model.control().steps()) before.push_back(step.before[0]);
    CHECK(before == (groups == 1 ? std::vector<float>{0, 0, 0, 0, 2, 2, 6, 6, 6, 6, 6, 6}
                                 : std::vector<float>{0, 0, 0, 0, 3, 5, 3, 5, 6, 6, 6, 6}));
    CHECK(model.parameters()[0] == 7);
  }
}

TEST_CASE("a group's weight counts all examples since the last merge of all, not only of its last round") {
  // Replicas 1, 3, 5, 7, groups' means 2 and 6. Then worker 0 alone: 2 again. The first group has trained
  // three examples, the second two: (3 * 2 + 2 * 6) / 5.
  ToyModel model({.training = {.updater = Sgd{.learningRate = 0.5}}});
  auto data = ToyIterator::ofValues({2, 6, 10, 14, 2});
  wrapperOf(model, 4, HierarchicalAveraging{.levels = {{.period = 1, .group = 2}, {.period = 100}}})
      .fit(data);
  CHECK(model.parameters()[0] == 3.6f);
}

TEST_CASE("invalid options of hierarchical averaging are refused by name") {
  using Levels = std::vector<HierarchicalAveraging::Level>;
  const auto refusal = [](Levels levels) {
    return thrown<InvalidArgument>([&] { HierarchicalAveraging{.levels = levels}.validate(); });
  };
  CHECK(refusal({}) == "hierarchical averaging: there are no levels");
  CHECK(refusal({{.period = 0}}) ==
        "hierarchical averaging: a period must be between 1 and 1099511627776, got 0");
  CHECK(refusal({{.period = 4, .group = 2}, {.period = 2}}) ==
        "hierarchical averaging: periods must ascend, got 2 after 4");
  CHECK(refusal({{.group = -1}}) ==
        "hierarchical averaging: a group must have at least 1 worker (0: all), got -1");
  const auto refusalOfFour = [](Levels levels) {
    ToyModel model;
    return thrown<InvalidArgument>([&] { wrapperOf(model, 4, HierarchicalAveraging{.levels = levels}); });
  };
  CHECK(refusalOfFour({{.period = 1, .group = 3}, {.period = 2}}) ==
        "hierarchical averaging: groups of 3 do not divide the 4 workers");
  CHECK(refusalOfFour({{.period = 1, .group = 2}, {.period = 2, .group = 3}, {.period = 2}}) ==
        "hierarchical averaging: groups of 2 do not divide groups of 3");
  CHECK(refusalOfFour({{.period = 1, .group = 2}}) ==
        "hierarchical averaging: the last level must merge all 4 workers, got groups of 2");
  for (const auto* const level : {"4", ":all", "4:", "4:two", "4:2:1"})
    CHECK_REFUSED(
        strategyNamed("hierarchical", fmt::format("levels={},16:all", level), 4),
        fmt::format("strategy hierarchical: levels: expected period:workers, as in 4:2,16:all, got \"{}\"",
                    level));
}
