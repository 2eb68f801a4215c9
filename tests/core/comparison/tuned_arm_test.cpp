#include "muster/core/comparison/tuned_arm.h"

#include "muster/core/comparison/detail/tables.h"
#include "tests/core/comparison/given.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using detail::tuningCells;
using test::contains;
using test::Given;

std::vector<TuningChoice> learningRates(std::initializer_list<const char*> rates) {
  std::vector<TuningChoice> choices;
  for (const std::string rate : rates)
    choices.push_back({"learningRate=" + rate, {"network.updater.learningRate=" + rate}});
  return choices;
}

TEST_CASE("without tuning the table says so, with it what was chosen and what it cost") {
  Given given({"averaging"});
  given.run(0, 1, {0.9});
  CHECK(given.c.tuningNote().starts_with("Nothing was tuned: "));
  given.c.grid.tune = {"learningRate=0.1,0.2,0.3"};
  given.c.tuned = {{.arm = "averaging",
                    .choices = learningRates({"0.1", "0.2", "0.3"}),
                    .losses = {0.5, 0.25, INFINITY},
                    .best = 1,
                    .seconds = 12.5}};
  CHECK(tuningCells(given.c)[1] ==
        std::vector<std::string>{"averaging", "learningRate=0.2",
                                 "learningRate=0.1: 0.5, learningRate=0.2: 0.25, learningRate=0.3: diverged",
                                 "3", "12.5"});
  CHECK(given.c.tuningNote().starts_with("Tuned alike: "));
  given.c.tuned.front().best = 0;
  CHECK(tuningCells(given.c)[1][1] == "learningRate=0.1 ^");
  CHECK_CONTAINS(given.c.tuningNote(), "others beyond it may be better");
}

TEST_CASE("the smallest finite validation loss is chosen, the first of equal ones") {
  const auto run = [](double loss, std::string failure = {}) {
    return RunRecord{.arm = "a", .points = {{.seconds = 2, .loss = loss}}, .failure = std::move(failure)};
  };
  const RunRecord high = run(0.75), low = run(0.25), equal = run(0.25), failed = run(0.125, "nan");
  const auto tuned =
      chooseTuning("a", std::vector<TuningChoice>(4), std::array{&high, &low, &equal, &failed});
  CHECK(tuned.best == 1);
  CHECK(tuned.seconds == 8);
  CHECK(chooseTuning("a", std::vector<TuningChoice>(1), std::array{&failed}).failed());
}

TEST_CASE("a remark is due if the best of one list of numbers is its smallest or largest, in any order") {
  const auto atEnd = [](std::vector<TuningChoice> choices, std::size_t best) {
    TunedArm tuned{.arm = "a", .choices = std::move(choices), .losses = {}, .best = best};
    tuned.losses.assign(tuned.choices.size(), 0.5);
    return tuned.atEnd();
  };
  CHECK(atEnd(learningRates({"0.01", "0.03", "1e-1"}), 0));
  CHECK_FALSE(atEnd(learningRates({"0.01", "0.03", "1e-1"}), 1));
  CHECK(atEnd(learningRates({"0.01", "0.03", "1e-1"}), 2));
  CHECK(atEnd(learningRates({"0.03", "0.1", "0.01"}), 1));
  CHECK_FALSE(atEnd(learningRates({"0.1", "0.01", "0.03"}), 2));
  CHECK_FALSE(atEnd(learningRates({"0.1"}), 0));
  CHECK_FALSE(atEnd({{"type=sgd", {"updater.type=sgd"}}, {"type=adam", {"updater.type=adam"}}}, 0));
  CHECK_FALSE(atEnd({{"a=1 b=1", {"a=1", "b=1"}}, {"a=1 b=2", {"a=1", "b=2"}}}, 0));
  TunedArm failed{.arm = "a", .choices = learningRates({"1", "2"}), .losses = {INFINITY, INFINITY}};
  CHECK_FALSE(failed.atEnd());
}

}  // namespace
}  // namespace muster
