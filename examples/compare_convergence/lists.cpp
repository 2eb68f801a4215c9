#include "examples/compare_convergence/lists.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "examples/support/training_options.h"
#include "muster/core/optim/updater.h"

namespace convergence {

using muster::require;

std::vector<std::string> parseWords(std::string_view option, std::string_view text) {
  std::vector<std::string> words;
  if (text.empty()) return words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    std::string word(text.substr(begin, end - begin));
    require(!word.empty(), "--{}: \"{}\" is not a list as in a,b,c: a word is empty", option, text);
    require(std::ranges::find(words, word) == words.end(), "--{}: {} is given twice", option, word);
    words.push_back(std::move(word));
    begin = end + 1;
  }
  return words;
}

bool beginsNumber(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  if (text.starts_with('.')) text.remove_prefix(1);
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) != 0;
}

std::vector<std::string> parseStrategies(std::string_view option, std::string_view text) {
  std::vector<std::string> all;
  if (text.empty()) return all;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    const auto part = text.substr(begin, end - begin);
    const bool isOption = part.find('=') < part.find(':');
    if ((beginsNumber(part) || isOption) && !all.empty())
      all.back().append(",").append(part);
    else
      all.emplace_back(part);
    begin = end + 1;
  }
  for (auto strategy = all.begin(); strategy != all.end(); ++strategy) {
    require(!strategy->empty(), "--{}: \"{}\" is not a list as in a,b,c: a word is empty", option, text);
    require(std::find(all.begin(), strategy, *strategy) == strategy, "--{}: {} is given twice", option,
            *strategy);
  }
  return all;
}

std::vector<std::int64_t> parseNumbers(std::string_view option, std::string_view text, std::int64_t least,
                                       std::int64_t most) {
  std::vector<std::int64_t> numbers;
  for (const auto& word : parseWords(option, text)) {
    std::int64_t number = 0;
    const char* const end = word.data() + word.size();
    const auto read = std::from_chars(word.data(), end, number);
    require(read.ec == std::errc() && read.ptr == end, "--{}: \"{}\" is no whole number", option, word);
    require(number >= least && number <= most, "--{}: each must be between {} and {}, got {}", option, least,
            most, number);
    require(std::ranges::find(numbers, number) == numbers.end(), "--{}: {} is given twice", option, number);
    numbers.push_back(number);
  }
  return numbers;
}

std::vector<UpdaterChoice> parseUpdaters(std::string_view option, std::string_view text) {
  std::vector<UpdaterChoice> updaters;
  for (const auto& word : parseWords(option, text)) {
    const auto colon = word.find(':');
    UpdaterChoice choice{.name = word.substr(0, colon)};
    choice.learningRate = example::defaultLearningRate(choice.name);
    if (colon != std::string::npos) {
      const std::string rate = word.substr(colon + 1);
      char* end = nullptr;
      choice.learningRate = std::strtod(rate.c_str(), &end);
      require(!rate.empty() && *end == '\0' && std::isfinite(choice.learningRate) && choice.learningRate > 0,
              "--{}: {}: the learning rate must be a positive number, got \"{}\"", option, word, rate);
    }
    muster::Updater::named(choice.name, choice.learningRate);  // throws for an unknown name
    require(std::ranges::find(updaters, choice) == updaters.end(), "--{}: {} is given twice", option, word);
    updaters.push_back(std::move(choice));
  }
  return updaters;
}

std::vector<std::string> updaterTexts(const std::vector<UpdaterChoice>& updaters) {
  std::vector<std::string> texts;
  for (const auto& updater : updaters)
    texts.push_back(fmt::format("{}:{}", updater.name, updater.learningRate));
  return texts;
}

}  // namespace convergence
