#include "examples/muster/compare/arms.h"
#include "examples/muster/compare/sentences.h"
#include "examples/muster/compare/tuning.h"
#include "tests/support/test.h"

namespace comparing {
namespace {

using muster::InvalidArgument;
using muster::test::thrown;
using Texts = std::vector<std::string>;

BaseRun base() {
  return {"run.json",
          R"({"format": "muster-run/1",
    "data": {"type": "generated", "batch": 8, "seed": 77, "validationExamples": 20},
    "network": {"format": "muster.MultiLayerConfiguration", "version": 1, "seed": 5, "updater": {"type": "nesterovs", "learningRate": 0.01},
                "layers": [{"type": "dense", "units": 4}, {"type": "output", "classes": 10}]},
    "training": {"workers": 3, "strategy": {"name": "averaging", "every": 4}}})",
          {}};
}

TEST_CASE("braces give all combinations, and JSON keeps its braces") {
  CHECK(expandBraces("a={1,2} b={3,4}") == Texts{"a=1 b=3", "a=1 b=4", "a=2 b=3", "a=2 b=4"});
  CHECK(expandBraces("plain") == Texts{"plain"});
  CHECK(expandBraces("x={1}") == Texts{"x=1"});
  CHECK(expandBraces(R"(u={"type": "adam"} w={1,2})") ==
        Texts{R"(u={"type": "adam"} w=1)", R"(u={"type": "adam"} w=2)"});
  CHECK(expandBraces("open={1") == Texts{"open={1"});
  CHECK(wordsOf(R"(a  b={"c": "d e", "f": [1, 2]} g)") == Texts{"a", R"(b={"c": "d e", "f": [1, 2]})", "g"});
}

TEST_CASE("an arm is a strategy and fields by short names, with a name or without") {
  const auto run = base();
  const auto arms = parseArms("diloco every={50,100} workers=2", run);
  REQUIRE(arms.size() == 2);
  CHECK(arms[0].name == "diloco every=50 workers=2");
  CHECK(arms[1].settings ==
        Texts{"training.strategy.name=diloco", "training.strategy.every=100", "training.workers=2"});
  const auto named =
      parseArms("slow start: averaging period=qsr period.alpha=0.5 learningRate={0.1,0.2} batch=4", run);
  REQUIRE(named.size() == 2);
  CHECK(named[1].name == "slow start, learningRate=0.2");
  CHECK(named[1].settings == Texts{"training.strategy.name=averaging", "training.strategy.period=qsr",
                                   "training.strategy.period.alpha=0.5", "network.updater.learningRate=0.2",
                                   "data.batch=4"});
  CHECK(parseArms("wide: network.layers[0].units=9", run).front().settings ==
        Texts{"network.layers[0].units=9"});
  CHECK(parseArms("as it is:", run).front().settings.empty());
  CHECK(run.run(named[1].settings).makeStrategy(1).make() != nullptr);
}

TEST_CASE("the joined arm is one worker on the batches of all") {
  const auto arm = parseArms("joined workers=4", base()).front();
  const auto run = base().run(arm.settings);
  CHECK(run.data.batch == 32);
  CHECK(run.training.workers == 1);
  CHECK(run.training.strategy == "averaging");
  // It is tested at merges: it merges in each iteration, also if an epoch has few, or the rule merges seldom.
  CHECK(std::ranges::count(arm.settings, "training.strategy.every=1") == 1);
  CHECK(base().run(parseArms("joined", base()).front().settings).data.batch == 24);
}

TEST_CASE("an arm that cannot be read is quoted, with the nearest word and an example") {
  const auto refuses = [](const std::string& text, const std::string& problem) {
    const auto refusal = thrown<InvalidArgument>([&] { parseArms(text, base()); });
    CHECK_CONTAINS(refusal, "--arm \"" + text + "\": " + problem);
    CHECK(
        refusal.ends_with("; an arm is as in \"diloco every=50\" or \"slow: averaging learningRate=0.01\""));
  };
  refuses("", "it is empty;");
  refuses("dilocco every=5", "there is no strategy \"dilocco\"; the nearest is diloco");
  refuses("averaging workers=0", "training.workers must be between 1 and 1024, got 0");
  refuses("averaging evry=5",
          "there is no field and no option of averaging called \"evry\"; the nearest is every");
  refuses("averaging =5", "\"=5\" sets no field");
  refuses("wild: sgd: updater=sgd", "");  // a second colon is no name
  refuses("averaging every={1,2", "it has a brace { that is not closed;");
  refuses("averaging every=1,2}", "it has a brace } without one before it that it closes;");
  refuses(
      "averaging every={1,2,3,4,5,6,7,8,9,10} batch={1,2,3,4,5,6,7,8,9,10} workers={1,2,3,4,5,6,7,8,9,10,11}",
      "its braces give more than 1000 arms");
}

TEST_CASE("arms that merge less often than they say, or have idle workers, are warned of") {
  const auto run = base();
  muster::ComparisonGrid grid{.trainExamples = 160};  // twenty batches: ten iterations of two workers
  for (const auto& arm : parseArms("averaging workers=2 every={10,11}", run)) grid.arms.push_back(arm);
  grid.arms.push_back(parseArms("many: workers=30", run).front());
  const auto warnings = warningsOf(run, grid);
  REQUIRE(warnings.size() == 2);
  CHECK(warnings[0].ends_with("than the period: averaging workers=2 every=11."));
  CHECK(warnings[1].ends_with("so some train nothing: many."));
}

TEST_CASE("a seed draws weights and order, but not what is held out") {
  const auto one = base().run({}, 3);
  CHECK(one.data.seed == 3);
  CHECK(one.data.splitSeed == 77);
  CHECK(one.network.find("\"seed\": 3") != std::string::npos);
  CHECK(base().differences(one, 3).empty());
  CHECK(base().differences(base().run({"training.strategy.every=4"}, 3), 3).empty());  // as in the file
  CHECK(base().differences(base().run({"training.workers=2", "training.epochs=9"}, 4), 4) ==
        Texts{"training.epochs=9", "training.workers=2"});
  CHECK(base().differences(base().run({"training.model=other"}, 4), 4).empty());
  CHECK_REFUSED(base().run({"training.workers=0"}), "training.workers must be between 1 and 1024, got 0");
}

TEST_CASE("devices that an arm leaves to the program are those that were chosen once") {
  auto run = base();
  const Texts unasked{"training.devices=auto"};
  CHECK(run.trainedRun(unasked, 1).training.devices == "auto");
  run.setUnasked(std::vector{muster::Device::cuda(1)});
  run.setDevices(std::vector{muster::Device::cuda(0), muster::Device::cuda(1)});
  CHECK(run.trainedRun(unasked, 1).training.devices == "cuda:1");
  CHECK(run.trainedRun({}, 1).training.devices == "cuda:0,cuda:1");
  // What tells a run from others says that they were left to the program, on other GPUs, too.
  CHECK(run.differences(run.run(unasked), 0) == Texts{R"(training.devices="auto")"});
}

TEST_CASE("tuning tries all combinations of what an arm does not set itself, of several values, each once") {
  const auto run = base();
  const muster::ComparisonArm plain{"averaging", {"training.strategy.name=averaging"}};
  const muster::ComparisonArm diloco{"diloco", {"training.strategy.name=diloco"}};
  const muster::ComparisonArm own{"own", {"network.updater.learningRate=7"}};
  const Texts tune{"learningRate=0.1,0.2", "rate=0.5,1"};
  const auto choices = choicesOf(diloco, tune, run);
  REQUIRE(choices.size() == 4);
  CHECK(choices[1].text == "learningRate=0.1 rate=1");
  CHECK(choices[1].settings == Texts{"network.updater.learningRate=0.1", "training.strategy.rate=1"});
  CHECK(choicesOf(plain, tune, run).size() == 2);  // averaging has no rate
  CHECK(choicesOf(own, tune, run).empty());
  CHECK(choicesOf(plain, {"learningRate=0.1, 0.2"}, run)[1].settings ==
        Texts{"network.updater.learningRate=0.2"});
  const Texts paths{"training.strategy.rate=2", "network.updater.learningRate=0.3", "workers=1"};
  CHECK(namedAs(tune, paths, {plain, diloco}, run) == Texts{"rate=2", "learningRate=0.3", "workers=1"});
  CHECK(namedAs(tune, paths, {own}, run) == paths);

  CHECK_NOTHROW(checkTune(tune, {plain, diloco, own}, run));
  const auto refusal = [&](const Texts& texts, const std::vector<muster::ComparisonArm>& arms) {
    return thrown<InvalidArgument>([&] { checkTune(texts, arms, run); });
  };
  CHECK(refusal({"learningRate=1,2", "network.updater.learningRate=3,4"}, {own, plain}) ==
        "--tune learningRate=1,2 and --tune network.updater.learningRate=3,4: both tune "
        "network.updater.learningRate; give all its values at once");
  CHECK(refusal({"learningRate=0.1,0.2"}, {own}) ==
        "--tune learningRate=0.1,0.2: every arm sets learningRate itself");
  CHECK_CONTAINS(refusal({"rate=1,2"}, {plain}), "called \"rate\"");
  CHECK(refusal({"workers=1,0"}, {plain}).starts_with("--tune workers=0: training.workers must be between"));
  CHECK_NOTHROW(checkValues({"learningRate=0.1"}, /*several=*/false));
  CHECK_REFUSED(checkValues({"learningRate"}, false),
                "--tune learningRate: expected a field and its values, as in learningRate=0.01,0.03,0.1");
  CHECK_REFUSED(checkValues({"learningRate=0.1,1,0.10"}, false),
                "--tune learningRate=0.1,1,0.10: 0.10 is given twice");
  const auto one = thrown<InvalidArgument>([] { checkValues({"learningRate=0.1"}, /*several=*/true); });
  CHECK_CONTAINS(one, "--tune learningRate=0.1: there is one value, and tuning ");
}

}  // namespace
}  // namespace comparing
