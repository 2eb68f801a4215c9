#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "examples/compare_convergence/grid.h"
#include "examples/compare_convergence/names.h"
#include "muster/core/base/error.h"
#include "muster/parallel/strategies.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "tests/support/thrown.h"

namespace convergence {
namespace {

using muster::test::thrown;

GridLists smallLists() {
  return {.modes = {Mode::Averaging, Mode::Synchronous},
          .workers = {2, 4},
          .frequencies = {1, 10},
          .batches = {32},
          .updaters = {{"nesterovs", 0.01}},
          .scalings = {Scaling::None},
          .synchronousUntil = {0},
          .seeds = {1, 2, 3}};
}

std::vector<std::string> namesOf(const Grid& grid) {
  std::vector<std::string> names;
  for (const auto& arm : grid.arms) names.push_back(armName(arm, grid));
  return names;
}

TEST_CASE("lists give every combination once, with one worker at B and at W B beside them") {
  const Grid grid = expandGrid(smallLists());
  CHECK(namesOf(grid) == std::vector<std::string>{"one worker, batch 32", "one worker, batch 64",
                                                  "averaging every 1, 2 workers",
                                                  "averaging every 10, 2 workers", "synchronous, 2 workers",
                                                  "one worker, batch 128", "averaging every 1, 4 workers",
                                                  "averaging every 10, 4 workers", "synchronous, 4 workers"});
  CHECK(grid.runs() == 27);
  REQUIRE(grid.panels.size() == 2);
  CHECK(grid.panels[0].arms == std::vector<std::size_t>{0, 1, 2, 3, 4});
  CHECK(grid.panels[1].arms == std::vector<std::size_t>{0, 5, 6, 7, 8});
  CHECK(panelName(grid.panels[1]) == "4 workers, batch 32 each, nesterovs at learning rate 0.01");
}

TEST_CASE("arms that become the same experiment on few examples are reported") {
  auto lists = smallLists();
  lists.modes = {Mode::Averaging};
  lists.frequencies = {5, 6};
  const Grid grid = expandGrid(lists);
  // Twenty batches: ten iterations of two workers, five of four.
  CHECK(degenerateArms(grid, 640).find(": averaged at the end of an epoch only, whatever the frequency: "
                                       "averaging every 6, 4 workers") != std::string::npos);
  CHECK(degenerateArms(grid, 641).empty());  // one more batch gives one more iteration
  CHECK(degenerateArms(grid, 65).ends_with(
      ". Also fewer batches than workers, some train nothing: averaging every 5, 4 workers; averaging every "
      "6, 4 workers"));
}

TEST_CASE("the learning rate is scaled for W workers and for one at W B, not for one at B") {
  auto lists = smallLists();
  lists.workers = {4};
  lists.scalings = {Scaling::None, Scaling::Linear, Scaling::SquareRoot};
  const Grid grid = expandGrid(lists);
  // One worker at B is in all three panels, but is a single arm.
  CHECK(grid.arms.size() == 1 + 3 * 4);
  const auto rates = [&](std::size_t panel) {
    std::vector<double> all;
    for (const auto index : grid.panels[panel].arms) all.push_back(grid.arms[index].learningRate);
    return all;
  };
  CHECK(rates(0) == std::vector<double>(5, 0.01));
  CHECK(rates(1) == std::vector<double>{0.01, 0.04, 0.04, 0.04, 0.04});
  CHECK(rates(2) == std::vector<double>{0.01, 0.02, 0.02, 0.02, 0.02});
  CHECK(grid.arms[grid.panels[1].arms[1]].batch == 128);
  CHECK(panelName(grid.panels[1]) ==
        "4 workers, batch 32 each, nesterovs at learning rate 0.04 (linear scaling of 0.01)");
  CHECK(scalingFactor(Scaling::SquareRoot, 2) == std::sqrt(2.0));
}

TEST_CASE("combinations that train the same are one arm") {
  auto lists = smallLists();
  lists.workers = {2};
  lists.synchronousUntil = {0, 50};
  lists.modes = {Mode::Averaging, Mode::Shared};
  const Grid grid = expandGrid(lists);
  // Averaging every iteration is the same with a post-local switch; shared gradients have no frequency.
  CHECK(namesOf(grid) ==
        std::vector<std::string>{"one worker, batch 32", "one worker, batch 64",
                                 "averaging every 1, 2 workers", "averaging every 10, 2 workers",
                                 "averaging every 10 after 50, 2 workers", "shared gradients, 2 workers"});
  CHECK(grid.panels[0].arms.size() == 6);
}

TEST_CASE("all arms of a large grid have different names and file names") {
  GridLists lists{.modes = {Mode::Averaging, Mode::Synchronous, Mode::Shared},
                  .workers = {2, 4, 3},
                  .frequencies = {1, 3, 10},
                  .batches = {32, 64},
                  .updaters = {{"nesterovs", 0.01}, {"nesterovs", 0.02}, {"adam", 0.001}},
                  .scalings = {Scaling::None, Scaling::Linear, Scaling::SquareRoot},
                  .synchronousUntil = {0, 50},
                  .seeds = {1, 2}};
  const Grid grid = expandGrid(lists);
  CHECK(grid.panels.size() == 3 * 2 * 3 * 3);
  std::set<std::string> names, files;
  for (const auto& arm : grid.arms) {
    names.insert(armName(arm, grid));
    files.insert(armFileName(arm));
  }
  CHECK(names.size() == grid.arms.size());
  CHECK(files.size() == grid.arms.size());
}

TEST_CASE("a strategy by name is an arm at every frequency, which sets its option `every`") {
  auto lists = smallLists();
  lists.modes.clear();
  lists.workers = {4};
  lists.strategies = {"averaging", "diloco:rate=0.5:updaterState=reset"};
  const Grid grid = expandGrid(lists);
  CHECK(namesOf(grid) == std::vector<std::string>{"one worker, batch 32", "one worker, batch 128",
                                                  "averaging every 1, 4 workers",
                                                  "averaging every 10, 4 workers",
                                                  "diloco:rate=0.5:updaterState=reset every 1, 4 workers",
                                                  "diloco:rate=0.5:updaterState=reset every 10, 4 workers"});
  const auto strategy = strategyOf(grid.arms.back());
  const auto* outer = strategy.as<muster::OuterAveraging>();
  REQUIRE(outer != nullptr);
  CHECK(outer->frequency == 10);
  CHECK(outer->rate == 0.5);
  CHECK(outer->updaterState == muster::UpdaterState::Reset);
  CHECK(armFileName(grid.arms.back()) == "diloco-rate=0.5-updaterState=reset-w4-f10-b32-nesterovs-lr0.01-u0");
  const auto slow =
      strategyOf({.mode = Mode::Strategy, .workers = 3, .strategy = "asynchronous:speeds=half:rate=0.5"});
  CHECK(slow.as<muster::AsynchronousOuter>()->speeds == std::vector<double>{0.5, 1, 1});
  CHECK(slow.as<muster::AsynchronousOuter>()->rate == 0.5);
  const auto refusal = [&](const char* name, std::int64_t workers = 4) {
    lists.strategies = {name};
    lists.workers = {workers};
    return thrown<muster::InvalidArgument>([&] { expandGrid(lists); });
  };
  CHECK(refusal("dilocco").starts_with("there is no strategy \"dilocco\"; the nearest is diloco"));
  CHECK(refusal("averaging:period=a:b") ==
        thrown<muster::InvalidArgument>([] { muster::strategyNamed("averaging", "period=a:b,every=1", 4); }));
  const Arm colons{.mode = Mode::Strategy, .workers = 2, .strategy = "asynchronous:speeds=1:.5:rate=0.25"};
  CHECK(strategyOf(colons).as<muster::AsynchronousOuter>()->speeds == std::vector<double>{1, 0.5});
  CHECK(strategyOf(colons).as<muster::AsynchronousOuter>()->rate == 0.25);
  const Arm withSpeeds{
      .mode = Mode::Strategy, .workers = 2, .frequency = 3, .strategy = "asynchronous:rate=0.5:speeds=1,0.5"};
  const auto declared = strategyOf(withSpeeds);
  CHECK(declared.as<muster::AsynchronousOuter>()->speeds == std::vector<double>{1, 0.5});
  CHECK(declared.as<muster::AsynchronousOuter>()->rate == 0.5);
  CHECK(refusal("adasum", 3).starts_with("adasum: the number of workers must be a power of two"));
}

TEST_CASE("a strategy without the option `every` is one arm, whatever the frequencies") {
  auto lists = smallLists();
  lists.modes.clear();
  lists.workers = {2};
  lists.strategies = {"synchronous", "averaging"};
  const Grid grid = expandGrid(lists);
  CHECK(namesOf(grid) == std::vector<std::string>{"one worker, batch 32", "one worker, batch 64",
                                                  "synchronous, 2 workers", "averaging every 1, 2 workers",
                                                  "averaging every 10, 2 workers"});
  CHECK(strategyOf(grid.arms[2]).make() != nullptr);
  CHECK(armFileName(grid.arms[2]) == "synchronous-w2-f0-b32-nesterovs-lr0.01-u0");
  lists.strategies = {"synchronous:every=3"};
  CHECK(thrown<muster::InvalidArgument>([&] { expandGrid(lists); }) ==
        thrown<muster::InvalidArgument>([] { muster::strategyNamed("synchronous", "every=3", 2); }));
}

TEST_CASE("an empty grid is refused, and the error names the list") {
  const auto refusal = [](auto empty) {
    auto lists = smallLists();
    empty(lists);
    return thrown<muster::InvalidArgument>([&] { expandGrid(lists); });
  };
  const std::string text = "the grid is empty, there is nothing to train: --";
  CHECK(refusal([](GridLists& l) { l.modes.clear(); }) == text + "mode names nothing");
  CHECK(refusal([](GridLists& l) { l.workers.clear(); }) == text + "workers names nothing");
  CHECK(refusal([](GridLists& l) { l.frequencies.clear(); }) == text + "frequency names nothing");
  CHECK(refusal([](GridLists& l) { l.seeds.clear(); }) == text + "seeds names nothing");
  CHECK(refusal([](GridLists& l) {
          l.frequencies.clear();
          l.modes = {Mode::Synchronous};
        }).empty());
}

}  // namespace
}  // namespace convergence
