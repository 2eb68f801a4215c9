// How the options of a named strategy are read from a text and listed.
#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/strategies/option_fields.h"

namespace muster {
namespace {

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

  void describe(std::string_view description) override { description_ = description; }
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
  void field(std::string_view, Shape&) override {}  // cannot be given by name
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
                       std::string(std::exchange(description_, {})), std::move(words)});
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
  const std::string path_;        // name of the object, with a dot at the end
  std::string_view description_;  // of the next field; "": none
};

std::vector<StrategyOption> visitOptions(AnyStrategy& strategy, std::vector<GivenOption>& given) {
  std::vector<StrategyOption> listed;
  OptionTexts texts(listed, given);
  strategy.fields(texts);
  return listed;
}

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

}  // namespace muster
