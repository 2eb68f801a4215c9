#include "muster/core/comparison/tuned_arm.h"

#include "muster/core/comparison/detail/tables.h"
#include "tests/core/comparison/given.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

using muster::detail::tuningCells;

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

TEST_CASE("arms with other choices are named, and are not called tuned alike") {
  Given given({"averaging", "joined", "diloco"});
  given.run(0, 1, {0.9});
  given.c.grid.tune = {"learningRate=0.1,0.2,0.3"};
  const auto tuned = [](std::string arm, std::initializer_list<const char*> rates) {
    return TunedArm{
        .arm = std::move(arm), .choices = learningRates(rates), .losses = std::vector(rates.size(), 0.5)};
  };
  const auto note = [&](TunedArm joined, TunedArm diloco) {
    given.c.tuned = {tuned("averaging", {"0.1", "0.2"}), std::move(joined), std::move(diloco)};
    return given.c.tuningNote();
  };
  CHECK(note(tuned("joined", {"0.1", "0.2"}), tuned("diloco", {"0.1", "0.2"})).starts_with("Tuned alike: "));
  given.c.tuned.pop_back();  // an arm that is not done
  CHECK(given.c.tuningNote().starts_with("Tuned: each arm "));
  CHECK_LACKS(given.c.tuningNote(), "Not alike");
  const auto fewer = note(tuned("joined", {"0.1"}), tuned("diloco", {}));
  CHECK(fewer.starts_with("Tuned: each arm "));
  CHECK_CONTAINS(
      fewer,
      "Not alike, as an arm keeps a field that it sets itself, or lacks it: averaging tried 2 choices, "
      "joined 1, diloco 0.");
  CHECK(tuningCells(given.c)[3] == std::vector<std::string>{"diloco", "not tuned", "-", "0", "0"});
  CHECK_CONTAINS(note(tuned("joined", {"0.1", "0.3"}), tuned("diloco", {"0.1", "0.2"})),
                 "joined 2, diloco 2.");
}

TEST_CASE("what tuning cost has the marks of its trainings, and they are explained") {
  Given given({"averaging"});
  given.run(0, 1, {0.9});
  const RunRecord quiet{.arm = "a", .points = {{.seconds = 2, .loss = 1}}, .cores = 2, .threads = 2};
  const RunRecord crowded{.arm = "a",
                          .points = {{.seconds = 2, .loss = 2}},
                          .cores = 2,
                          .threads = 4,
                          .othersBusy = 1.25,
                          .loaded = true};
  const auto seconds = [&](const RunRecord& other) {
    given.c.tuned = {chooseTuning("averaging", learningRates({"0.1", "0.2"}), std::array{&quiet, &other})};
    return tuningCells(given.c)[1][4];
  };
  const auto notes = [&] {
    return muster::detail::summaryNotes(given.c, given.summary(), muster::detail::Detail::Brief);
  };
  CHECK(seconds(quiet) == "4.00");
  CHECK_LACKS(notes().back(), "! Measured under load");
  CHECK(seconds(crowded) == "4.00 *!");
  CHECK_CONTAINS(notes().back(), "! Measured under load: other programs kept up to 1.2 cores busy");
  CHECK_CONTAINS(notes().at(notes().size() - 2), "* 4 threads shared 2 cores");
}

TEST_CASE("a note says that the load during short trainings is not known") {
  Given given({"averaging"});
  given.run(0, 1, {0.9}, 0.5);
  CHECK_LACKS(given.c.text(2000), "not marked");
  given.run(0, 2, {0.9}, 0.25);
  CHECK_CONTAINS(given.c.text(2000),
                 "Load of other programs is not known, and not marked, for less than 0.5 s.");
}

TEST_CASE("the smallest finite validation loss is chosen, the first of equal ones") {
  const auto run = [](double loss, std::string failure = {}) {
    return RunRecord{.arm = "a", .points = {{.seconds = 2, .loss = loss}}, .failure = std::move(failure)};
  };
  const RunRecord high = run(0.75), low = run(0.25), equal = run(0.25), failed = run(0.125, "nan");
  const auto tuned =
      chooseTuning("a", std::vector<TuningChoice>(4), std::array{&high, &low, &equal, &failed});
  CHECK(textOf(tuned.best, tuned.seconds) == "1 8");
  CHECK(chooseTuning("a", std::vector<TuningChoice>(1), std::array{&failed}).failed());
}

TEST_CASE("a remark is due if the best of one list of numbers is its smallest or largest, in any order") {
  const auto atEnd = [](std::vector<TuningChoice> choices, std::size_t best) {
    TunedArm tuned{.arm = "a", .choices = std::move(choices), .losses = {}, .best = best};
    tuned.losses.assign(tuned.choices.size(), 0.5);
    return tuned.atEnd();
  };
  for (const std::size_t best : {0, 1, 2})
    CHECK(atEnd(learningRates({"0.01", "0.03", "1e-1"}), best) == (best != 1));
  CHECK(atEnd(learningRates({"0.03", "0.1", "0.01"}), 1));
  CHECK_FALSE(atEnd(learningRates({"0.1", "0.01", "0.03"}), 2));
  CHECK_FALSE(atEnd(learningRates({"0.1"}), 0));
  CHECK_FALSE(atEnd({{"type=sgd", {"updater.type=sgd"}}, {"type=adam", {"updater.type=adam"}}}, 0));
  CHECK_FALSE(atEnd({{"a=1 b=1", {"a=1", "b=1"}}, {"a=1 b=2", {"a=1", "b=2"}}}, 0));
  TunedArm failed{.arm = "a", .choices = learningRates({"1", "2"}), .losses = {INFINITY, INFINITY}};
  CHECK_FALSE(failed.atEnd());
}

}  // namespace
}  // namespace muster::test
