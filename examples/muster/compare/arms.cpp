#include "examples/muster/compare/arms.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "muster/core/base/comma_list.h"
#include "muster/core/base/error.h"
#include "muster/parallel/strategies/named_strategy.h"

namespace comparing {
namespace {

using muster::ComparisonArm;
using muster::InvalidArgument;
using muster::require;

constexpr std::string_view kJoined = "joined";
constexpr std::size_t kMostArms = 1000;  // of one text

/// The name before a colon; "" if there is none. A colon within a word belongs to that word.
std::string_view nameIn(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == text.npos || (colon + 1 < text.size() && text[colon + 1] != ' ')) return "";
  return text.substr(0, colon);
}

/// The fields that make one worker train on the joined batches of the arm's workers.
std::vector<std::string> joinedSets(const std::vector<std::string>& sets, const BaseRun& base) {
  const auto run = base.run(sets);
  auto all = sets;
  // The bits of one worker do not depend on the period. It is tested at merges, and an epoch may have few
  // iterations, so it merges in each.
  for (const auto& set : {std::string("training.strategy.name=averaging"),
                          std::string("training.strategy.every=1"), std::string("training.workers=1"),
                          fmt::format("data.batch={}", run.data.batch * run.training.workers)})
    all.push_back(set);
  return all;
}

/// @throws InvalidArgument for a brace that is not closed, or not opened.
void requireClosed(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (!quoted) depth += (c == '{' ? 1 : 0) - (c == '}' ? 1 : 0);
    require(depth >= 0, "it has a brace }} without one before it that it closes");
  }
  require(depth == 0, "it has a brace {{ that is not closed");
}

ComparisonArm armOf(const std::vector<std::string>& words, const BaseRun& base) {
  ComparisonArm arm{.name = fmt::format("{}", fmt::join(words, " "))};
  const auto workers = static_cast<int>(base.run().training.workers);
  std::string strategy = base.run().training.strategy;
  bool joined = false;
  for (const auto& word : words) {
    if (word.find('=') != word.npos) continue;
    if (word == kJoined) {
      joined = true;
      continue;
    }
    muster::strategyNamed(word, "", workers);
    arm.settings.push_back("training.strategy.name=" + word);
    strategy = word;
  }
  for (const auto& word : words) {
    const auto equals = word.find('=');
    if (equals == word.npos) continue;
    require(equals > 0, "\"{}\" sets no field; expected FIELD=VALUE", word);
    arm.settings.push_back(base.pathOf(std::string_view(word).substr(0, equals), strategy) +
                           word.substr(equals));
  }
  if (joined) arm.settings = joinedSets(arm.settings, base);
  return arm;
}

/// The words that differ between the arms of one text.
std::string varied(const std::vector<std::string>& words, const std::vector<std::string>& first,
                   const std::vector<std::string>& last) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    if (first[i] != last[i]) text += ", " + words[i];
  return text;
}

}  // namespace

std::vector<std::string> wordsOf(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  int depth = 0;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (!quoted) depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    if (c != ' ' || quoted || depth > 0) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

std::vector<std::string> expandBraces(std::string_view text) {
  for (std::size_t open = text.find('{'); open != text.npos; open = text.find('{', open + 1)) {
    const auto close = text.find('}', open);
    if (close == text.npos || text[open + 1] == '"' || open + 1 == close) continue;
    std::vector<std::string> all;
    for (const auto part : muster::commaList(text.substr(open + 1, close - open - 1))) {
      const auto one = fmt::format("{}{}{}", text.substr(0, open), part, text.substr(close + 1));
      for (auto& inner : expandBraces(one)) all.push_back(std::move(inner));
      require(all.size() <= kMostArms, "its braces give more than {} arms", kMostArms);
    }
    return all;
  }
  return {std::string(text)};
}

std::vector<ComparisonArm> parseArms(std::string_view text, const BaseRun& base, std::string_view by) try {
  const auto name = nameIn(text);
  const auto rest = name.empty() ? text : text.substr(name.size() + 1);
  require(name.empty() || !name.starts_with(' '), "the name before the colon begins with a space");
  requireClosed(rest);
  std::vector<std::vector<std::string>> all;
  for (const auto& one : expandBraces(rest)) all.push_back(wordsOf(one));
  require(!name.empty() || !all.front().empty(), "it is empty");
  std::vector<ComparisonArm> arms;
  for (const auto& words : all) {
    arms.push_back(armOf(words, base));
    base.run(arms.back().settings);
    if (!name.empty()) arms.back().name = std::string(name) + varied(words, all.front(), all.back());
  }
  return arms;
} catch (const InvalidArgument& error) {
  throw InvalidArgument(fmt::format(
      "{} \"{}\": {}; an arm is as in \"diloco every=50\" or \"slow: averaging learningRate=0.01\"", by, text,
      error.what()));
}

}  // namespace comparing
