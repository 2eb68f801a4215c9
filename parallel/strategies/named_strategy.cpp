#include "muster/parallel/strategies/named_strategy.h"

#include <algorithm>
#include <ranges>

#include "muster/core/base/plural.h"
#include "muster/parallel/strategies/option_fields.h"
#include "muster/strategies.h"  // all strategies, written by CMake

namespace muster {
namespace {

constexpr std::size_t kColumns = 110, kIndent = 19;

struct GivenOption {
  std::string name, value;
  bool used = false;
};

/// "a=1,b=2,3" as {a, "1"} and {b, "2,3"}.
std::vector<GivenOption> parseOptions(std::string_view text) {
  std::vector<GivenOption> options;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    const auto item = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const auto equals = item.find('=');
    if (equals == item.npos) {
      require(!options.empty(), "expected options as in \"rate=0.7,every=100\", got \"{}\"", item);
      options.back().value.append(",").append(item);
      continue;
    }
    const auto name = item.substr(0, equals);
    require(std::ranges::find(options, name, &GivenOption::name) == options.end(), "{} is given twice", name);
    options.push_back({std::string(name), std::string(item.substr(equals + 1))});
  }
  return options;
}

/// Lists visited fields, and replaces those that are given.
class OptionTexts final : public Fields {
 public:
  OptionTexts(std::vector<StrategyOption>& listed, std::vector<GivenOption>& given, std::string path = {})
      : listed_(listed), given_(given), path_(std::move(path)) {}

  void describe(std::string_view description, std::string_view range = {}) override {
    description_ = description;
    range_ = range;
  }
  void field(std::string_view name, bool& value) override {
    const auto* const text = visit(name, value ? "true" : "false", "true or false");
    if (text == nullptr) return;
    require(*text == "true" || *text == "false", "{}{} must be true or false, got {}", path_, name, *text);
    value = *text == "true";
  }
  void field(std::string_view name, std::int64_t& value) override { number(name, value, "whole number"); }
  void field(std::string_view name, std::uint64_t& value) override { number(name, value, "whole number"); }
  void field(std::string_view name, double& value) override { number(name, value, "number"); }
  void field(std::string_view name, std::string& value) override {
    if (const auto* const text = visit(name, value, "text")) value = *text;
  }
  void field(std::string_view, Shape&) override { describe({}); }  // cannot be given by name
  void choice(std::string_view name, std::size_t& index, std::span<const std::string_view> names) override {
    const std::vector<std::string> words(names.begin(), names.end());
    const auto* const text = visit(name, words[index], detail::orList(words), words);
    if (text == nullptr) return;
    const auto found = std::ranges::find(words, *text);
    if (found == words.end()) detail::refuseUnknown(path_ + std::string(name), *text, words);
    index = static_cast<std::size_t>(found - words.begin());
  }
  void object(std::string_view name, std::string& type, const std::function<void(Fields&)>& inside) override {
    if (const auto* const text = visit(name, type, "name")) type = *text;
    OptionTexts texts(listed_, given_, fmt::format("{}{}.", path_, name));
    try {
      inside(texts);
    } catch (const InvalidArgument& error) {
      const std::string_view what = error.what();
      if (!what.starts_with("there is no type")) throw;
      throw InvalidArgument(fmt::format("{}{}: {}", path_, name, what));  // name the field
    }
  }

 private:
  /// @return the value that is given for the field; null: none.
  const std::string* visit(std::string_view name, std::string preset, std::string kind,
                           std::vector<std::string> words = {}) {
    listed_.push_back({path_ + std::string(name), std::move(preset), std::move(kind),
                       std::string(std::exchange(description_, {})), std::move(words),
                       std::string(std::exchange(range_, {}))});
    const auto found = std::ranges::find(given_, listed_.back().name, &GivenOption::name);
    if (found == given_.end()) return nullptr;
    found->used = true;
    return &found->value;
  }
  template <typename T>
  void number(std::string_view name, T& value, const char* kind) {
    const auto* const text = visit(name, fmt::format("{}", value), kind);
    require(!text || detail::readNumber(*text, value), "{}{} must be a {}, got \"{}\"", path_, name, kind,
            text ? *text : "");
  }

  std::vector<StrategyOption>& listed_;
  std::vector<GivenOption>& given_;
  const std::string path_;                // name of the object, with a dot at the end
  std::string_view description_, range_;  // of the next field; "": none
};

std::vector<StrategyOption> visitOptions(AnyStrategy& strategy, std::vector<GivenOption>& given) {
  std::vector<StrategyOption> listed;
  OptionTexts texts(listed, given);
  strategy.fields(texts);
  return listed;
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

std::string describe(const NamedStrategy& strategy, int workers) {
  auto about = wordsOf(strategy.description + ".");
  about.push_back("Source: " + strategy.source);  // on one line
  auto text = wrapped(about);
  text.replace(0, kIndent, fmt::format("{:<{}}", strategy.name, kIndent));
  std::vector<std::string> words;
  for (auto& option : optionsOf(strategy.options)) {
    if (option.name.starts_with("period")) continue;     // the same for all strategies: see kPeriods
    std::erase_if(option.words, [&](const auto& word) {  // that this strategy refuses
      try {
        strategyNamed(strategy.name, fmt::format("{}={}", option.name, word), workers);
        return false;
      } catch (const InvalidArgument&) {
        return true;
      }
    });
    words.push_back(
        fmt::format("{}={}{}", option.name, option.preset,
                    option.words.empty() ? "" : fmt::format(" ({})", detail::orList(option.words))));
  }
  return text + wrapped(words);
}

/// Options whose default alone does not show what else they take.
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

void setOptions(AnyStrategy& strategy, std::string_view options) {
  auto given = parseOptions(options);
  std::vector<std::string> known;
  for (auto& option : visitOptions(strategy, given)) known.push_back(std::move(option.name));
  for (const auto& option : given)
    if (!option.used) detail::refuseUnknown("option", option.name, known);
  strategy.validate();
}

std::vector<StrategyOption> optionsOf(AnyStrategy strategy) {
  std::vector<GivenOption> none;
  return visitOptions(strategy, none);
}

std::vector<NamedStrategy> namedStrategies(int workers) {
  std::vector<NamedStrategy> all;
  const auto add = [&]<typename... T>(std::type_identity<std::tuple<T...>>) {
    (std::ranges::move(T::named(workers), std::back_inserter(all)), ...);
  };
  add(std::type_identity<detail::LibraryStrategies>());
  std::ranges::sort(all, {}, &NamedStrategy::name);
  return all;
}

AnyStrategy strategyNamed(std::string_view name, std::string_view options, int workers) {
  auto all = namedStrategies(workers);
  const auto found = std::ranges::find(all, name, &NamedStrategy::name);
  if (found == all.end()) {
    std::vector<std::string> names;
    for (const auto& one : all) names.push_back(one.name);
    detail::refuseUnknown("strategy", name, names);
  }
  try {
    setOptions(found->options, options);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("strategy {}: {}", name, error.what()));
  }
  return found->options;
}

std::string describeStrategies(int workers) {
  std::string text =
      fmt::format("Strategies with their options and defaults, for {}:\n\n", plural(workers, "worker"));
  for (const auto& strategy : namedStrategies(workers)) text += describe(strategy, workers);
  return text.append(kPeriods);
}

}  // namespace muster
