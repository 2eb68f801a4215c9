// How the options of a named strategy are read from a text and listed.
#include "muster/parallel/strategies/named_options.h"

#include <algorithm>
#include <charconv>

#include "muster/core/base/error.h"
#include "muster/core/base/nearest_word.h"
#include "muster/parallel/strategies/named_strategy.h"

namespace muster {
namespace {

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

/// Collects visited fields.
class OptionLister final : public Fields {
 public:
  explicit OptionLister(std::vector<StrategyOption>& options, std::string path = {})
      : options_(options), path_(std::move(path)) {}

  void describe(std::string_view description) override { description_ = description; }
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
    options_.push_back({path_ + std::string(name), fmt::format("{}", value), std::string(kind),
                        std::string(std::exchange(description_, {}))});
  }

  std::vector<StrategyOption>& options_;
  const std::string path_;        // name of the object, with a dot at the end
  std::string_view description_;  // of the next field; "": none
};

}  // namespace

void refuseUnknown(std::string_view what, std::string_view word, const std::vector<std::string>& known) {
  if (known.empty()) throw InvalidArgument(fmt::format("there is no {} \"{}\"; it has none", what, word));
  throw InvalidArgument(fmt::format("there is no {} \"{}\"{}", what, word, nearestOfHint(word, known)));
}

std::string orList(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text.append(i == 0 ? "" : i + 1 == words.size() ? " or " : ", ").append(words[i]);
  return text;
}

void setOptions(AnyStrategy& strategy, std::string_view options) {
  auto pairs = parsePairs(options);
  PairReader reader(pairs);
  strategy.fields(reader);
  std::vector<std::string> known;
  for (const auto& option : optionsOf(strategy)) known.push_back(option.name);
  for (const auto& pair : pairs)
    if (!pair.used) refuseUnknown("option", pair.name, known);
  strategy.validate();
}

std::vector<StrategyOption> optionsOf(AnyStrategy strategy) {
  std::vector<StrategyOption> options;
  OptionLister lister(options);
  strategy.fields(lister);
  return options;
}

}  // namespace muster
