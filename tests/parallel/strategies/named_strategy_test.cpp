#include "muster/parallel/strategies/named_strategy.h"

#include <sstream>

#include "muster/core/io/json_fields.h"
#include "muster/parallel/strategies.h"
#include "tests/support/thrown.h"

using namespace muster;
using muster::test::thrown;

namespace {

std::string refusal(std::string_view name, std::string_view options) {
  return thrown<InvalidArgument>([&] { strategyNamed(name, options, 2); });
}

OuterAveraging outer(std::string_view name, std::string_view options, int workers = 2) {
  return *strategyNamed(name, options, workers).as<OuterAveraging>();
}

Period periodOf(std::string_view options) {
  return strategyNamed("averaging", options, 2).as<Averaging>()->frequency;
}

/// A user's rule whose options have names of options of the library.
struct Damped {
  double rate = -1, momentum = 2;
  Shape sizes = {};
  bool nesterov = false;
  void fields(Fields& f) {
    f.field("rate", rate, "of any size");
    f.field("momentum", momentum, "at least 1", "[1, )");
    f.field("sizes", sizes, "of no use", "[3, )");
    f.field("nesterov", nesterov);
  }
  void validate() const {}
  std::unique_ptr<Strategy> make() const { return Averaging{}.make(); }
};

std::string asText(AnyStrategy strategy) {
  std::string text;
  for (const auto& option : optionsOf(std::move(strategy))) text += option.name + "=" + option.preset + ",";
  return text.substr(0, text.empty() ? 0 : text.size() - 1);
}

}  // namespace

TEST_CASE("a strategy's name gives a preset, and options replace its numbers") {
  const auto plain = outer("diloco", "");
  CHECK(plain.frequency == OuterAveraging::diloco().frequency);
  CHECK(plain.rate == 0.7);
  CHECK(plain.updaterState == UpdaterState::Keep);
  const auto changed = outer("diloco", "rate=0.5,momentum=0.25,every=100,updaterState=reset,nesterov=false");
  CHECK(changed.frequency == 100);
  CHECK(changed.rate == 0.5);
  CHECK(changed.momentum == 0.25);
  CHECK(changed.updaterState == UpdaterState::Reset);
  CHECK(!changed.nesterov);
  CHECK(outer("bmuf", "", 4).momentum == 0.75);
}

TEST_CASE("every kind of period has a name") {
  CHECK(periodOf("every=7") == 7);
  CHECK(periodOf("every=7,period.until=50") == Period::postLocal(50, 7));
  CHECK(periodOf("every=4,period=qsr,period.alpha=0.25,period.power=3") ==
        Period::qsr(4, {.alpha = 0.25, .power = 3}));
  CHECK(periodOf("period=adacomm,period.interval=5,period.shrink=1,every=16") ==
        Period::adaComm(16, {.interval = 5, .shrink = 1}));
  CHECK(periodOf("period=fixed") == 1);
}

TEST_CASE("options may have options of their own") {
  const auto options =
      *strategyNamed("shared", "threshold=target,threshold.density=0.25", 2).as<SharedGradients>();
  REQUIRE(std::holds_alternative<TargetDensityThreshold>(options.thresholdAlgorithm));
  CHECK(std::get<TargetDensityThreshold>(options.thresholdAlgorithm).density == 0.25);
}

TEST_CASE("an option may be a list of numbers") {
  const auto speeds = [](std::string_view options) {
    return strategyNamed("asynchronous", options, 2).as<AsynchronousOuter>()->speeds;
  };
  CHECK(speeds("speeds=1,0.5,every=3") == std::vector<double>{1, 0.5});
  CHECK(speeds("every=3,speeds=2") == std::vector<double>{2});
  CHECK(speeds("speeds=equal").empty());
  CHECK(speeds("").empty());
  for (const auto* wrong : {"speeds=1,,2", "speeds=1;2", "speeds="})
    CHECK(refusal("asynchronous", wrong)
              .starts_with("strategy asynchronous: speeds must be equal or numbers as in \"1,0.5\", got "));
}

TEST_CASE("an option has the range that it is described with, not that of another option of its name") {
  const auto options = optionsOf(Damped{});
  REQUIRE(options.size() == 3);  // sizes cannot be given by name
  CHECK(options[0].range == "");
  CHECK(options[1].range == "[1, )");
  CHECK(options[2].range == "");
  CHECK(options[2].description == "");
  std::map<std::string, std::string> ranges;
  for (const auto& option : optionsOf(OuterAveraging{})) ranges[option.name] = option.range;
  CHECK(ranges["rate"] == "(0, )");
  CHECK(ranges["momentum"] == "[0, 1)");
}

TEST_CASE("an unknown name is refused, and the error suggests the nearest known one") {
  CHECK(refusal("dilocco", "").starts_with("there is no strategy \"dilocco\"; the nearest is diloco, of "));
  CHECK(refusal("lookahead", "rat=1")
            .starts_with(
                "strategy lookahead: there is no option \"rat\"; the nearest is rate, of every, period, "));
  CHECK(refusal("synchronous", "every=2") ==
        "strategy synchronous: there is no option \"every\"; it has none");
  CHECK(
      refusal("averaging", "updaterState=kept") ==
      "strategy averaging: there is no updaterState \"kept\"; the nearest is keep, of average, keep, reset");
  CHECK(refusal("averaging", "period=qrs") ==
        "strategy averaging: period: there is no type \"qrs\"; there are fixed, qsr, adacomm");
  CHECK(refusal("averaging", "period.alpha=1")
            .starts_with("strategy averaging: there is no option \"period.alpha\"; there are every, "));
}

TEST_CASE("values of another type are refused") {
  CHECK(refusal("diloco", "rate=fast") == "strategy diloco: rate must be a number, got \"fast\"");
  CHECK(refusal("diloco", "rate=0.5x") == "strategy diloco: rate must be a number, got \"0.5x\"");
  CHECK(refusal("diloco", "rate=") == "strategy diloco: rate must be a number, got \"\"");
  CHECK(refusal("diloco", "every=1.5") == "strategy diloco: every must be a whole number, got \"1.5\"");
  CHECK(refusal("diloco", "nesterov=yes") == "strategy diloco: nesterov must be true or false, got yes");
  CHECK(refusal("diloco", "rate=1,rate=2") == "strategy diloco: rate is given twice");
  CHECK(refusal("diloco", "fast") ==
        "strategy diloco: expected options as in \"rate=0.7,every=100\", got \"fast\"");
  CHECK(refusal("asynchronous", "clock=sun") ==
        "strategy asynchronous: there is no clock \"sun\"; there are virtual, wall");
}

TEST_CASE("each option out of range is refused by name, with its value") {
  const std::string iterations = " must be between 1 and 1099511627776, got ";
  const std::string async = "asynchronous outer: ", elastic = "elastic averaging: ",
                    outer = "outer averaging: ", late = "overlapped averaging: ",
                    streaming = "streaming outer averaging: ", threshold = "thresholdAlgorithm: ",
                    share = "codec: share must be in (0, 1], got ";
  const struct {
    const char *strategy, *options;
    std::string problem;
  } rows[] = {
      {"averaging", "every=0", "averaging: every" + iterations + "0"},
      {"averaging", "codec=top-k,codec.share=0", "averaging: " + share + "0"},
      {"adasum", "every=0", "adasum: every" + iterations + "0"},
      {"outer", "every=0", outer + "every" + iterations + "0"},
      {"outer", "rate=0", outer + "rate must be above 0, got 0"},
      {"outer", "rate=nan", outer + "rate must be above 0, got nan"},
      {"outer", "rate=1.5e6", outer + "rate can be at most 1000000, got 1500000"},
      {"outer", "momentum=1", outer + "momentum must be in [0, 1), got 1"},
      {"easgd", "every=0", elastic + "every" + iterations + "0"},
      {"easgd", "centreRate=1.5", elastic + "centreRate must be in [0, 1], got 1.5"},
      {"easgd", "centreRate=nan", elastic + "centreRate must be in [0, 1], got nan"},
      {"easgd", "elasticity=-0.1", elastic + "elasticity must be in [0, 1], got -0.1"},
      {"easgd", "codec=power-sgd,codec.rank=33", elastic + "codec: rank must be between 1 and 32, got 33"},
      {"overlapped", "every=3,delay=3",
       late + "delay must be shorter than the period of 3 iterations, got 3"},
      {"overlapped", "delay=-1", late + "delay cannot be negative, got -1"},
      {"overlapped", "landing=pull,landing.strength=1.5", late + "strength must be in [0, 1], got 1.5"},
      {"overlapped", "landing=pull,landing.strength=nan", late + "strength must be in [0, 1], got nan"},
      {"overlapped", "rate=0", late + "rate must be above 0, got 0"},
      {"overlapped", "momentum=1", late + "momentum must be in [0, 1), got 1"},
      {"streaming", "fragments=0", streaming + "fragments must be between 1 and 64, got 0"},
      {"streaming", "every=5", streaming + "every must be a multiple of the 2 fragments, got 5"},
      {"streaming", "every=6,delay=3",
       streaming + "delay must be shorter than a fragment's turn of 3 iterations, got 3"},
      {"streaming", "mixing=-0.5", streaming + "mixing must be in [0, 1], got -0.5"},
      {"streaming", "rate=nan", streaming + "rate must be above 0, got nan"},
      {"streaming", "codec=top-k,codec.share=nan", streaming + share + "nan"},
      {"gossip", "every=0", "gossip: every" + iterations + "0"},
      {"gossip", "modelEvery=0", "gossip: modelEvery" + iterations + "0"},
      {"gossip", "modelEvery=2,measureDistance=true",
       "gossip: measureDistance needs the mean of the replicas in every round, but modelEvery is 2"},
      {"gossip", "period.until=-1", "gossip: period.until cannot be negative, got -1"},
      {"gossip", "period.untilEpoch=-1", "gossip: period.untilEpoch cannot be negative, got -1"},
      {"gossip", "period.first=0", "gossip: period.first" + iterations + "0"},
      {"gossip", "period=qsr,period.alpha=-1", "gossip: period.alpha must be at least 0, got -1"},
      {"gossip", "period=qsr,period.power=0", "gossip: period.power must be above 0, got 0"},
      {"gossip", "period=adacomm,period.interval=0", "gossip: period.interval" + iterations + "0"},
      {"gossip", "period=adacomm,period.shrink=0", "gossip: period.shrink must be in (0, 1], got 0"},
      {"gossip", "period=adacomm,period.shrink=nan", "gossip: period.shrink must be in (0, 1], got nan"},
      {"asynchronous", "every=0", async + "every" + iterations + "0"},
      {"asynchronous", "rate=0", async + "rate must be above 0, got 0"},
      {"asynchronous", "momentum=1", async + "momentum must be in [0, 1), got 1"},
      {"asynchronous", "arrivalsPerStep=-1", async + "arrivalsPerStep cannot be negative, got -1"},
      {"asynchronous", "speeds=1,0", async + "speeds must be between 1e-06 and 1000000, got 0"},
      {"asynchronous", "staleness=-1", async + "staleness cannot be negative, got -1"},
      {"asynchronous", "grace=nan", async + "grace must be at least 0, got nan"},
      {"asynchronous", "updaterState=average",
       async + "updaterState cannot be Average, since workers are merged one by one; use Keep or Reset"},
      {"asynchronous", "period=adacomm",
       async + "period cannot be AdaComm, since batches are dealt before there are scores to adapt to"},
      {"asynchronous", "clock=wall,grace=0.5",
       async + "grace is virtual time, so on the wall clock it must be 0, got 0.5"},
      {"asynchronous", "clock=wall,speeds=1,2",
       async + "speeds only count for fewerIterationsIfSlow on the wall clock; give that, too, or no speeds"},
      {"asynchronous", "codec=top-k,codec.share=2", async + share + "2"},
      {"shared", "threshold=fixed,threshold.threshold=-0.5",
       threshold + "threshold must be between 1e-30 and 1e+30, got -0.5"},
      {"shared", "threshold=fixed,threshold.threshold=nan",
       threshold + "threshold must be between 1e-30 and 1e+30, got nan"},
      {"shared", "threshold.initial=0", threshold + "initial must be between 1e-30 and 1e+30, got 0"},
      {"shared", "threshold.minDensity=0.5,threshold.maxDensity=0.1",
       threshold + "minDensity (0.5) is above maxDensity (0.1)"},
      {"shared", "threshold.maxDensity=1.5", threshold + "maxDensity must be above 0 and at most 1, got 1.5"},
      {"shared", "threshold=target,threshold.density=0",
       threshold + "density must be above 0 and at most 1, got 0"},
      {"shared", "threshold=target,threshold.decay=1", threshold + "decay must be between 0 and 1, got 1"},
      {"shared", "residualClipping=0.5",
       "residualClipping must be 0 (off) or between 1 and 1000000 thresholds, got 0.5"},
      {"shared", "residualClipping=1e300",
       "residualClipping must be 0 (off) or between 1 and 1000000 thresholds, got 1e+300"},
      {"shared", "residualClippingFrequency=0", "residualClippingFrequency must be at least 1, got 0"},
      {"shared", "resynchronizationFrequency=-1", "resynchronizationFrequency cannot be negative, got -1"}};
  for (const auto& [strategy, options, problem] : rows)
    CHECK(refusal(strategy, options) == fmt::format("strategy {}: {}", strategy, problem));
  CHECK_REFUSED(Averaging{.updaterState = static_cast<UpdaterState>(7)}.validate(),
                "updaterState: there is no choice 7");
  CHECK_REFUSED(Gossip{.graph = static_cast<GossipGraph>(9)}.validate(), "gossip: there is no graph 9");
}

TEST_CASE("rules are described by their options") {
  const struct {
    const char *strategy, *options, *text;
  } all[] = {
      {"averaging", "", "averaging every iteration"},
      {"averaging", "every=3", "averaging every 3 iterations"},
      {"adasum", "", "adaptive summation every 10 iterations"},
      {"diloco", "every=100", "outer averaging every 100 iterations (rate 0.7, Nesterov momentum 0.9)"},
      {"outer", "every=2", "outer averaging every 2 iterations (rate 1, momentum 0)"},
      {"easgd", "", "elastic averaging every 10 iterations (centre rate 0.9, elasticity 0.9 / workers)"},
      {"sma", "", "elastic averaging every iteration (centre rate 1, elasticity 0.1, centre first)"},
      {"overlap-local-sgd", "",
       "overlapped averaging every 2 iterations, delay 1 (rate 1, momentum 0.7, pull 0.6)"},
      {"streaming", "",
       "streaming outer averaging, each of 2 fragments every 10 iterations, delay 1 (rate 1, momentum 0, "
       "mixing "
       "0.5)"},
      {"gossip", "every=2", "gossip (exponential) every 2 iterations"},
      {"hierarchical", "levels=1:2,8:all", "averaging groups of 2 every iteration, all every 8 iterations"},
      {"hierarchical", "levels=4:2,16:all",
       "averaging groups of 2 every 4 iterations, all every 16 iterations"},
      {"delayed-nesterov", "",
       "asynchronous outer steps, an arrival every 50 iterations (rate 0.7, Nesterov momentum 0.9)"},
      {"asynchronous", "every=2,rate=0.9,clock=wall",
       "asynchronous outer steps, an arrival every 2 iterations (rate 0.9, momentum 0), on the wall clock: a "
       "run cannot be repeated"}};
  for (const auto& [strategy, options, text] : all)
    CHECK(strategyNamed(strategy, options, 4).make()->describe() == text);
}

TEST_CASE("each strategy of the library has a unique name, a source, and defaults that can be read back") {
  for (const int workers : {1, 4}) {
    const auto all = namedStrategies(workers);
    CHECK(all.size() >= std::tuple_size_v<detail::LibraryStrategies>);
    for (std::size_t i = 0; i < all.size(); ++i) {
      CAPTURE(all[i].name);
      CHECK((i == 0 || all[i - 1].name < all[i].name));
      CHECK(!all[i].description.empty());
      CHECK(!all[i].source.empty());
      all[i].options.validate();
      const auto text = asText(all[i].options);
      const auto again = strategyNamed(all[i].name, text, workers);
      CHECK(asText(again) == text);
      CHECK(again.make()->describe() == all[i].options.make()->describe());
    }
  }
}

TEST_CASE("a strategy is written to JSON and read back") {
  auto strategy = strategyNamed("outer", "every=4,period=qsr,period.alpha=0.25,rate=0.5", 2);
  JsonWriter writer;
  strategy.fields(writer);
  AnyStrategy read = OuterAveraging{};
  JsonReader reader(writer.text());
  read.fields(reader);
  reader.finish();
  CHECK(asText(read) == asText(strategy));
}

namespace {

/// Words of a text that are separated by spaces or line ends, without punctuation.
std::vector<std::string> wordsOf(std::string_view text) {
  std::vector<std::string> words;
  std::istringstream in{std::string(text)};
  for (std::string word; in >> word;) {
    while (word.size() > 1 && std::string_view(":;,.)").find(word.back()) != std::string_view::npos)
      word.pop_back();
    words.push_back(std::move(word));
  }
  return words;
}

bool isAccepted(std::string_view strategy, std::string_view options) {
  try {
    strategyNamed(strategy, options, 2).make();
    return true;
  } catch (const InvalidArgument&) {
    return false;
  }
}

}  // namespace

TEST_CASE("every option in the table is accepted as it is printed, with the words in brackets, too") {
  const auto table = describeStrategies(2);
  const auto strategies = namedStrategies(2);
  for (const auto& strategy : strategies) {
    const auto begin = table.find("\n" + strategy.name + " ") + 1;
    auto end = begin;
    do end = table.find('\n', end) + 1;
    while (table[end] == ' ');
    const auto words = wordsOf(table.substr(begin, end - begin));
    std::string option, together;
    for (const auto& word : words) {
      const auto equals = word.find('=');
      INFO("name ", strategy.name, ", word ", word);
      if (equals != word.npos) {
        option = word.substr(0, equals);
        together += (together.empty() ? "" : ",") + word;
        CHECK(isAccepted(strategy.name, word));
      } else if (!option.empty() && word != "or") {
        CHECK(isAccepted(strategy.name, option + "=" + word.substr(word.starts_with("(") ? 1 : 0)));
      }
    }
    CAPTURE(together);
    CHECK(isAccepted(strategy.name, together));
  }
}

TEST_CASE("every example below the table is accepted as it is printed, and has a strategy") {
  const auto table = describeStrategies(2);
  auto below = table.substr(table.find("A strategy with every=N"));
  below.erase(0, below.find('\n'));
  int examples = 0;
  std::string before;  // the example that later ones of its paragraph add to
  for (const auto& word : wordsOf(below)) {
    if (word.find('=') == word.npos || word == "every=N") continue;
    ++examples;
    bool accepted = false;
    for (const auto& strategy : namedStrategies(2))
      for (const std::string& base : {std::string(), before + ",", std::string("clock=wall,")})
        accepted = accepted || isAccepted(strategy.name, base + word);
    CHECK_MESSAGE(accepted, word);
    if (word.find('.') == word.npos || word.find(',') != word.npos) before = word;
  }
  CHECK(examples > 20);
  // Each kind of value that is a text is explained.
  for (const auto& strategy : namedStrategies(2))
    for (const auto& option : optionsOf(strategy.options))
      if ((option.kind == "text" || option.kind == "name") && option.name != "period")
        CHECK_MESSAGE(below.find("  " + option.name + "=") != below.npos, option.name);
}

TEST_CASE("the table lists every strategy with its source and defaults, in lines that fit") {
  const auto table = describeStrategies(2);
  for (const auto& strategy : namedStrategies(2)) {
    CAPTURE(strategy.name);
    CHECK(table.find("\n" + strategy.name + " ") != table.npos);
    CHECK(table.find(strategy.source) != table.npos);
  }
  CHECK(table.find("every=500 rate=0.7 momentum=0.9 nesterov=true") != table.npos);
  std::size_t longest = 0;
  for (std::size_t begin = 0; begin < table.size();) {
    const auto end = table.find('\n', begin);
    longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  CHECK(longest <= 110);
}
