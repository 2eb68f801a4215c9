#include "muster/parallel/strategies/named_strategy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ranges>

#include "muster/core/base/nearest_word.h"
#include "muster/core/base/plural.h"
#include "muster/strategies.h"  // all strategies, written by CMake

namespace muster {
namespace {

constexpr std::size_t kColumns = 110, kIndent = 19;

/// As in `there is no option "rat"; the nearest is rate, of every, momentum, rate`.
[[noreturn]] void refuseUnknown(std::string_view what, std::string_view word,
                                const std::vector<std::string>& known) {
  if (known.empty()) throw InvalidArgument(fmt::format("there is no {} \"{}\"; it has none", what, word));
  const auto& nearest = nearestWord(word, known);
  std::string all;
  for (const auto& name : known) all += (all.empty() ? "" : ", ") + name;
  throw InvalidArgument(
      fmt::format("there is no {} \"{}\"; the nearest is {}, of {}", what, word, nearest, all));
}

struct Pair {
  std::string name, value;
  bool used = false;
};

/// "a=1,b=2,3" as {a, "1"} and {b, "2,3"}.
std::vector<Pair> parsePairs(std::string_view text) {
  std::vector<Pair> pairs;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    const auto item = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const auto equals = item.find('=');
    if (equals == item.npos) {
      require(!pairs.empty(), "expected options as in \"rate=0.7,every=100\", got \"{}\"", item);
      pairs.back().value.append(",").append(item);
      continue;
    }
    const auto name = item.substr(0, equals);
    require(std::ranges::find(pairs, name, &Pair::name) == pairs.end(), "{} is given twice", name);
    pairs.push_back({std::string(name), std::string(item.substr(equals + 1))});
  }
  return pairs;
}

/// Replaces visited fields by the values of pairs.
class PairReader final : public Fields {
 public:
  explicit PairReader(std::vector<Pair>& pairs, std::string path = {})
      : pairs_(pairs), path_(std::move(path)) {}

  void field(std::string_view name, bool& value) override {
    if (const auto* text = find(name)) {
      require(*text == "true" || *text == "false", "{}{} must be true or false, got {}", path_, name, *text);
      value = *text == "true";
    }
  }
  void field(std::string_view name, std::int64_t& value) override { number(name, value, "a whole number"); }
  void field(std::string_view name, std::uint64_t& value) override { number(name, value, "a whole number"); }
  void field(std::string_view name, double& value) override { number(name, value, "a number"); }
  void field(std::string_view name, std::string& value) override {
    if (const auto* text = find(name)) value = *text;
  }
  void field(std::string_view name, Shape&) override {
    throw InvalidArgument(fmt::format("{}{} cannot be given by name", path_, name));
  }
  void choice(std::string_view name, std::size_t& index, std::span<const std::string_view> names) override {
    const auto* text = find(name);
    if (text == nullptr) return;
    const auto found = std::ranges::find(names, *text);
    if (found == names.end())
      refuseUnknown(path_ + std::string(name), *text, std::vector<std::string>(names.begin(), names.end()));
    index = static_cast<std::size_t>(found - names.begin());
  }
  void object(std::string_view name, std::string& type, const std::function<void(Fields&)>& inside) override {
    const auto* const text = find(name);
    if (text) type = *text;
    PairReader reader(pairs_, fmt::format("{}{}.", path_, name));
    try {
      inside(reader);
    } catch (const InvalidArgument& error) {
      const std::string_view what = error.what();
      if (!text || !what.starts_with("there is no type")) throw;
      throw InvalidArgument(fmt::format("{}{}: {}", path_, name, what));  // name the field
    }
  }

 private:
  const std::string* find(std::string_view name) {
    const auto found = std::ranges::find(pairs_, path_ + std::string(name), &Pair::name);
    if (found == pairs_.end()) return nullptr;
    found->used = true;
    return &found->value;
  }
  template <typename T>
  void number(std::string_view name, T& value, std::string_view kind) {
    const auto* text = find(name);
    if (text == nullptr) return;
    const char* const end = text->data() + text->size();
    const auto [rest, error] = std::from_chars(text->data(), end, value);
    require(error == std::errc{} && rest == end, "{}{} must be {}, got \"{}\"", path_, name, kind, *text);
  }

  std::vector<Pair>& pairs_;
  const std::string path_;  // name of the object, with a dot at the end
};

/// As in "keep or reset".
std::string orList(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text.append(i == 0 ? "" : i + 1 == words.size() ? " or " : ", ").append(words[i]);
  return text;
}

/// Collects visited fields.
class OptionLister final : public Fields {
 public:
  explicit OptionLister(std::vector<StrategyOption>& options, std::string path = {})
      : options_(options), path_(std::move(path)) {}

  void field(std::string_view name, bool& value) override {
    add(name, value ? "true" : "false", "true or false");
  }
  void field(std::string_view name, std::int64_t& value) override { add(name, value, "whole number"); }
  void field(std::string_view name, std::uint64_t& value) override { add(name, value, "whole number"); }
  void field(std::string_view name, double& value) override { add(name, value, "number"); }
  void field(std::string_view name, std::string& value) override { add(name, value, "text"); }
  void field(std::string_view, Shape&) override {}
  void choice(std::string_view name, std::size_t& index, std::span<const std::string_view> names) override {
    add(name, names[index], orList({names.begin(), names.end()}));
  }
  void object(std::string_view name, std::string& type, const std::function<void(Fields&)>& inside) override {
    add(name, type, "name");
    OptionLister lister(options_, fmt::format("{}{}.", path_, name));
    inside(lister);
  }

 private:
  void add(std::string_view name, const auto& value, std::string_view kind) {
    options_.push_back({path_ + std::string(name), fmt::format("{}", value), std::string(kind)});
  }

  std::vector<StrategyOption>& options_;
  const std::string path_;  // name of the object, with a dot at the end
};

template <typename... T>
void addNamed(std::vector<NamedStrategy>& all, int workers, std::tuple<T...>*) {
  (std::ranges::move(T::named(workers), std::back_inserter(all)), ...);
}

std::vector<std::string> namesOf(const auto& all) {
  std::vector<std::string> names;
  for (const auto& one : all) names.push_back(one.name);
  return names;
}

/// The words in indented lines of at most kColumns.
std::string wrapped(const std::vector<std::string>& words) {
  std::string text;
  std::size_t column = kColumns;
  for (const auto& word : words) {
    const bool fits = column + 1 + word.size() <= kColumns;
    text += fits ? " " : (text.empty() ? "" : "\n") + std::string(kIndent, ' ');
    column = (fits ? column + 1 : kIndent) + word.size();
    text += word;
  }
  return text.empty() ? text : text + "\n";
}

std::vector<std::string> wordsOf(std::string_view text) {
  std::vector<std::string> words;
  for (const auto word : std::views::split(text, ' ')) words.emplace_back(word.begin(), word.end());
  return words;
}

/// Those of an option's words that the strategy accepts.
std::vector<std::string> acceptedWords(const NamedStrategy& strategy, const StrategyOption& option,
                                       int workers) {
  auto words = wordsOf(option.kind);
  std::erase(words, "or");
  for (auto& word : words)
    if (word.ends_with(',')) word.pop_back();
  std::erase_if(words, [&](const auto& word) {
    try {
      strategyNamed(strategy.name, fmt::format("{}={}", option.name, word), workers);
      return false;
    } catch (const InvalidArgument&) {
      return true;
    }
  });
  return words;
}

std::string describe(const NamedStrategy& strategy, int workers) {
  auto about = wordsOf(strategy.description + ".");
  about.push_back("Source: " + strategy.source);  // on one line
  auto text = wrapped(about);
  text.replace(0, kIndent, fmt::format("{:<{}}", strategy.name, kIndent));
  std::vector<std::string> words;
  for (const auto& option : optionsOf(strategy.options)) {
    if (option.name.starts_with("period")) continue;  // the same for all strategies: see kPeriods
    const bool isChoice = option.kind.find(" or ") != std::string::npos && option.kind != "true or false";
    words.push_back(fmt::format(
        "{}={}{}", option.name, option.preset,
        isChoice ? fmt::format(" ({})", orList(acceptedWords(strategy, option, workers))) : std::string()));
  }
  return text + wrapped(words);
}

/// Options whose default alone does not tell what else they take.
constexpr std::string_view kPeriods = R"(
A strategy with every=N merges
  every=8                                     every 8 iterations of each worker
  every=8,period.until=500                    every iteration up to the 500th, then every 8: post-local SGD
                                              (Lin et al. 2020); period.untilEpoch=2: up to an epoch;
                                              period.first=4: every 4 iterations until then
  every=4,period=qsr,period.alpha=0.2         every max(4, floor((0.2 / learning rate)^2)) iterations (Gu et
                                              al. 2024); period.power=3: cubed
  every=16,period=adacomm,period.interval=10  every 16 at first, adapted to the score after each 10 rounds
                                              (Wang & Joshi 2019); period.shrink=0.5: halved if it does not
                                              fall

Options whose values are words or lists
  speeds=1,0.5                                how fast workers 0 and 1 are, one number for each worker;
                                              speeds=equal: all are equally fast
  staleness=2                                 no worker is more than 2 arrivals ahead of another one;
                                              staleness=none: no limit
  clock=wall                                  the order in which workers really arrive; clock=virtual: the
                                              order by their speeds, with the same bits in every run
  levels=4:2,16:all                           groups of 2 workers merge every 4 iterations, all workers every
                                              16; the last level is all
  elasticity=0.2                              how far a replica moves to the centre; elasticity=none: what
                                              centreRate gives
  landing=pull,landing.strength=0.5           replicas are pulled to the result; landing=delta: they are moved
                                              by the difference; landing=eager: with their own part at once
  threshold=fixed,threshold.threshold=0.001   the size from which elements are sent; threshold=adaptive: for a
                                              share between minDensity and maxDensity;
                                              threshold=target,threshold.density=0.01: for this share
  codec=int8                                  what is sent is rounded to 8 bits; codec=bf16, codec=e3m0,
                                              codec=whole: not rounded
  codec=top-k,codec.share=0.01                only this share is sent, the largest elements
  codec=power-sgd,codec.rank=4                matrices are sent as two factors of this rank
)";

}  // namespace

std::vector<NamedStrategy> namedStrategies(int workers) {
  std::vector<NamedStrategy> all;
  addNamed(all, workers, static_cast<detail::LibraryStrategies*>(nullptr));
  std::ranges::sort(all, {}, &NamedStrategy::name);
  return all;
}

AnyStrategy strategyNamed(std::string_view name, std::string_view options, int workers) {
  auto all = namedStrategies(workers);
  const auto found = std::ranges::find(all, name, &NamedStrategy::name);
  if (found == all.end()) refuseUnknown("strategy", name, namesOf(all));
  AnyStrategy& strategy = found->options;
  try {
    auto pairs = parsePairs(options);
    PairReader reader(pairs);
    strategy.fields(reader);
    for (const auto& pair : pairs)
      if (!pair.used) refuseUnknown("option", pair.name, namesOf(optionsOf(strategy)));
    strategy.validate();
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("strategy {}: {}", name, error.what()));
  }
  return strategy;
}

std::vector<StrategyOption> optionsOf(AnyStrategy strategy) {
  std::vector<StrategyOption> options;
  OptionLister lister(options);
  strategy.fields(lister);
  return options;
}

std::string describeStrategies(int workers) {
  std::string text =
      fmt::format("Strategies with their options and defaults, for {}:\n\n", plural(workers, "worker"));
  for (const auto& strategy : namedStrategies(workers)) text += describe(strategy, workers);
  return text.append(kPeriods);
}

}  // namespace muster
