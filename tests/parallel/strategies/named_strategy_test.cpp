#include "muster/parallel/strategies/named_strategy.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <vector>

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
  CHECK(strategyNamed("diloco", "every=100", 2).make()->describe() ==
        "outer averaging every 100 iterations (rate 0.7, Nesterov momentum 0.9)");
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

TEST_CASE("values of another type or out of range are refused") {
  CHECK(refusal("diloco", "rate=fast") == "strategy diloco: rate must be a number, got \"fast\"");
  CHECK(refusal("diloco", "rate=0.5x") == "strategy diloco: rate must be a number, got \"0.5x\"");
  CHECK(refusal("diloco", "rate=") == "strategy diloco: rate must be a number, got \"\"");
  CHECK(refusal("diloco", "every=1.5") == "strategy diloco: every must be a whole number, got \"1.5\"");
  CHECK(refusal("diloco", "nesterov=yes") == "strategy diloco: nesterov must be true or false, got yes");
  CHECK(refusal("diloco", "rate=1,rate=2") == "strategy diloco: rate is given twice");
  CHECK(refusal("diloco", "fast") ==
        "strategy diloco: expected options as in \"rate=0.7,every=100\", got \"fast\"");
  CHECK(refusal("diloco", "rate=-1") == "strategy diloco: outer averaging: rate must be above 0, got -1");
  CHECK(refusal("averaging", "every=0") ==
        "strategy averaging: averaging: every must be between 1 and 1099511627776, got 0");
  CHECK(refusal("diloco", "every=0") ==
        "strategy diloco: outer averaging: every must be between 1 and 1099511627776, got 0");
  CHECK(refusal("diloco", "period=qsr,period.alpha=-1") ==
        "strategy diloco: outer averaging: period.alpha must be at least 0, got -1");
  CHECK(refusal("asynchronous", "clock=sun") ==
        "strategy asynchronous: there is no clock \"sun\"; there are virtual, wall");
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
      CAPTURE(strategy.name);
      CAPTURE(word);
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
