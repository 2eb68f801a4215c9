#include "muster/datasets/detail/class_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "muster/core/base/error.h"
#include "muster/core/base/text_table.h"
#include "muster/datasets/cell_values.h"

namespace muster::detail {
namespace {

// More different labels than this are looked at twice.
constexpr std::int64_t kManyFractions = 12, kManyClasses = 50;

/// [number] its shortest text.
std::map<double, std::string> byValue(const std::set<std::string, std::less<>>& words) {
  std::map<double, std::string> numbers;
  for (const auto& word : words) {
    const auto value = numberIn(word);
    if (!value) return {};
    auto& text = numbers[*value];
    if (text.empty() || word.size() < text.size()) text = word;
  }
  return numbers;
}

}  // namespace

std::vector<std::string> classesOf(const std::set<std::string, std::less<>>& words, std::int64_t rows,
                                   std::string_view label, const std::filesystem::path& path) {
  const auto numbers = byValue(words);
  std::vector<std::string> classes;
  for (const auto& [value, word] : numbers) classes.push_back(word);
  if (numbers.empty()) classes.assign(words.begin(), words.end());
  const std::int64_t count = std::ssize(classes);
  const bool fractions =
      std::ranges::any_of(numbers, [](const auto& one) { return one.first != std::floor(one.first); });
  if (!numbers.empty() &&
      ((fractions && count > kManyFractions) || (count > kManyClasses && count > rows / 5)))
    throw FileError(path,
                    fmt::format("column {} has {} different numbers, too many to be classes; to predict "
                                "a number, ask for a regression (data.regression=true)",
                                csvField(label), count));
  if (count > kManyClasses && count > rows / 2)
    throw FileError(path, fmt::format("column {} has {} different labels in {} rows, too many to be classes",
                                      csvField(label), count, rows));
  return classes;
}

ClassNumbers::ClassNumbers(std::span<const std::string> classes) {
  for (std::size_t c = 0; c < classes.size(); ++c) {
    byText_.emplace(classes[c], static_cast<std::int64_t>(c));
    if (const auto value = numberIn(classes[c])) byValue_.emplace(*value, static_cast<std::int64_t>(c));
  }
}

std::optional<std::int64_t> ClassNumbers::find(std::string_view cell) const {
  cell = trimmed(cell);
  if (const auto found = byText_.find(cell); found != byText_.end()) return found->second;
  if (const auto value = numberIn(cell))
    if (const auto found = byValue_.find(*value); found != byValue_.end()) return found->second;
  return std::nullopt;
}

}  // namespace muster::detail
