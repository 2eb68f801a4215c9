#include <doctest/doctest.h>

#include "examples/compare_convergence/lists.h"
#include "tests/support/thrown.h"

namespace convergence {
namespace {

using muster::InvalidArgument;
using muster::test::thrown;

TEST_CASE("lists of numbers are read") {
  CHECK(parseNumbers("workers", "2,4,16", 2, 64) == std::vector<std::int64_t>{2, 4, 16});
  CHECK(parseNumbers("workers", "", 2, 64).empty());
  const auto refusal = [](const char* text) {
    return thrown<InvalidArgument>([&] { parseNumbers("workers", text, 2, 64); });
  };
  CHECK(refusal("2,,4") == "--workers: \"2,,4\" is not a list as in a,b,c: a word is empty");
  CHECK(refusal("2,") == "--workers: \"2,\" is not a list as in a,b,c: a word is empty");
  CHECK(refusal("2,x") == "--workers: \"x\" is no whole number");
  CHECK(refusal("2.5") == "--workers: \"2.5\" is no whole number");
  CHECK(refusal(" 2") == "--workers: \" 2\" is no whole number");
  CHECK(refusal("99999999999999999999") == "--workers: \"99999999999999999999\" is no whole number");
  CHECK(refusal("2,1") == "--workers: each must be between 2 and 64, got 1");
  CHECK(refusal("2,65") == "--workers: each must be between 2 and 64, got 65");
  CHECK(refusal("2,4,2") == "--workers: 2 is given twice");
  CHECK(refusal("2,02") == "--workers: 2 is given twice");
}

TEST_CASE("lists of names are read") {
  const std::vector<Mode> allowed{Mode::Averaging, Mode::Synchronous};
  CHECK(parseChoices<Mode>("mode", "synchronous,averaging", allowed) ==
        std::vector<Mode>{Mode::Synchronous, Mode::Averaging});
  CHECK(thrown<InvalidArgument>([&] { parseChoices<Mode>("mode", "single", allowed); }) ==
        "--mode: there is no \"single\"; there are averaging, synchronous");
}

TEST_CASE("strategies are read with lists and options after commas") {
  using Words = std::vector<std::string>;
  CHECK(parseStrategies("strategy", "").empty());
  CHECK(parseStrategies("strategy", "gossip,diloco:rate=0.5:momentum=0.8") ==
        Words{"gossip", "diloco:rate=0.5:momentum=0.8"});
  CHECK(parseStrategies("strategy", "asynchronous:speeds=1,0.5,gossip,asynchronous:speeds=0.5,0.5:rate=1") ==
        Words{"asynchronous:speeds=1,0.5", "gossip", "asynchronous:speeds=0.5,0.5:rate=1"});
  CHECK(parseStrategies("strategy", "averaging:period=qsr,period.alpha=0.2,slowmo") ==
        Words{"averaging:period=qsr,period.alpha=0.2", "slowmo"});
  CHECK(parseStrategies("strategy", "asynchronous:speeds=.5,1,-.5,+1,gossip,.") ==
        Words{"asynchronous:speeds=.5,1,-.5,+1", "gossip", "."});
  const auto refusal = [](const char* text) {
    return thrown<InvalidArgument>([&] { parseStrategies("strategy", text); });
  };
  CHECK(refusal("gossip,,slowmo") ==
        "--strategy: \"gossip,,slowmo\" is not a list as in a,b,c: a word is empty");
  CHECK(refusal("gossip,slowmo,gossip") == "--strategy: gossip is given twice");
}

TEST_CASE("updaters are read with their learning rate, or with the usual one") {
  const auto updaters = parseUpdaters("updater", "nesterovs,adam,adam:0.002,sgd:1e-1");
  CHECK(updaters ==
        std::vector<UpdaterChoice>{{"nesterovs", 0.01}, {"adam", 0.001}, {"adam", 0.002}, {"sgd", 0.1}});
  CHECK(updaterTexts(updaters) ==
        std::vector<std::string>{"nesterovs:0.01", "adam:0.001", "adam:0.002", "sgd:0.1"});
  const auto refusal = [](const char* text) {
    return thrown<InvalidArgument>([&] { parseUpdaters("updater", text); });
  };
  CHECK(refusal("newton").starts_with("updater: there is no type \"newton\"; there are adagrad, adam"));
  for (const char* rate : {"", "x", "0", "-1", "nan", "inf", "0.1x"})
    CHECK(refusal(fmt::format("sgd:{}", rate).c_str()) ==
          fmt::format("--updater: sgd:{0}: the learning rate must be a positive number, got \"{0}\"", rate));
  CHECK(refusal("adam,adam:0.001") == "--updater: adam:0.001 is given twice");
}

}  // namespace
}  // namespace convergence
