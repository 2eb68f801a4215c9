#include "muster/core/data/input_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/base/text_table.h"
#include "muster/core/data/data_set_iterator.h"

namespace muster {
namespace {

/// Classes or words in a message: all, or the first few.
std::string listOf(const std::vector<std::string>& words) {
  constexpr std::size_t kMost = 8;
  const std::vector<std::string> first(
      words.begin(), words.begin() + static_cast<std::ptrdiff_t>(std::min(words.size(), kMost)));
  return fmt::format("{}{}", csvList(first), words.size() > kMost ? ", ..." : "");
}

void requireSameClasses(const InputDescription& mine, const InputDescription& other, std::string_view here,
                        std::string_view there) {
  const auto &a = mine.classes, &b = other.classes;
  if (a == b) return;
  require(a.size() == b.size(), "{} has {} ({}), and {} has {} ({})", here,
          plural(a.size(), "class", "classes"), listOf(a), there, b.size(), listOf(b));
  const auto [left, right] = std::ranges::mismatch(a, b);
  throw InvalidArgument(
      fmt::format("class {} is {} in {}, and {} in {}", left - a.begin(), *left, here, *right, there));
}

void requireSameColumn(const ColumnDescription& a, const ColumnDescription& b, std::string_view here,
                       std::string_view there) {
  const auto name = csvField(a.name);
  require(a.kind == b.kind, "column {} holds {} in {}, and {} in {}", name, nameOf(a.kind), here,
          nameOf(b.kind), there);
  require(a.text == b.text, "the numbers of column {} have other units or commas in {} than in {}", name,
          here, there);
  require(a.words == b.words, "column {} has the words {} in {}, and {} in {}", name, listOf(a.words), here,
          listOf(b.words), there);
  require(a.featureNames() == b.featureNames(), "column {} has the features {} in {}, and {} in {}", name,
          listOf(a.featureNames()), here, listOf(b.featureNames()), there);
}

}  // namespace

std::vector<std::string> ColumnDescription::featureNames() const {
  std::vector<std::string> names;
  const auto add = [&](std::string_view part) { names.push_back(fmt::format("{}{}", name, part)); };
  if (kind == ColumnKind::Words) {
    for (const auto& word : words) add("=" + word);
    if (others) add("=(other)");
  } else {
    add("");
  }
  if (kind == ColumnKind::Number && logScale > 0) add(" (log)");
  if (kind == ColumnKind::Number && !quantiles.empty()) add(" (rank)");
  if (kind == ColumnKind::Date) {
    if (year)
      for (const auto* part : {" (year, cosine)", " (year, sine)"}) add(part);
    if (week)
      for (const auto* part : {" (Monday)", " (Tuesday)", " (Wednesday)", " (Thursday)", " (Friday)",
                               " (Saturday)", " (Sunday)"})
        add(part);
    if (day)
      for (const auto* part : {" (day, cosine)", " (day, sine)"}) add(part);
  }
  if (missing) add(" (missing)");
  return names;
}

std::int64_t ColumnDescription::features() const {
  std::int64_t count = missing ? 1 : 0;
  if (kind == ColumnKind::Words) return count + std::ssize(words) + (others ? 1 : 0);
  if (kind == ColumnKind::Number) return count + 1 + (logScale > 0 ? 1 : 0) + (quantiles.empty() ? 0 : 1);
  return count + 1 + (year ? 2 : 0) + (week ? 7 : 0) + (day ? 2 : 0);
}

std::int64_t InputDescription::features() const {
  std::int64_t count = 0;
  for (const auto& column : columns) count += column.features();
  return count;
}

std::vector<std::string> InputDescription::featureNames() const {
  std::vector<std::string> names;
  for (const auto& column : columns)
    for (auto& name : column.featureNames()) names.push_back(std::move(name));
  return names;
}

void InputDescription::requireSame(const InputDescription& other, std::string_view here,
                                   std::string_view there) const {
  for (const auto& [classifying, regressing, ofClasses, ofNumbers] :
       {std::tuple(this, &other, here, there), std::tuple(&other, this, there, here)})
    require(classifying->label.empty() || !regressing->label.empty() || regressing->targets.empty(),
            "{} has the classes of {}, and {} is a regression of {}", ofClasses, classifying->label,
            ofNumbers, regressing->targets.empty() ? "" : regressing->targets.front().name);
  require(label.empty() == other.label.empty(), "the column of the classes is {} in {}, and {} has none",
          label.empty() ? other.label : label, label.empty() ? there : here, label.empty() ? here : there);
  require(label == other.label, "the column of the classes is {} in {}, and {} in {}", label, here,
          other.label, there);
  requireSameClasses(*this, other, here, there);
  require(targets.size() == other.targets.size(), "{} has {} to predict, and {} has {}", here,
          plural(targets.size(), "number"), there, other.targets.size());
  for (std::size_t t = 0; t < targets.size(); ++t)
    require(targets[t].name == other.targets[t].name, "the number to predict is {} in {}, and {} in {}",
            targets[t].name, here, other.targets[t].name, there);
  require(pictures == other.pictures, "{} and {} bring pictures to other sizes or channels", here, there);
  const auto lacks = [](const ColumnDescription& column, std::string_view has, std::string_view lacking) {
    throw InvalidArgument(
        fmt::format("column {} is in {}, and not in {}", csvField(column.name), has, lacking));
  };
  for (std::size_t c = 0; c < std::max(columns.size(), other.columns.size()); ++c) {
    if (c >= columns.size()) lacks(other.columns[c], there, here);
    if (c >= other.columns.size()) lacks(columns[c], here, there);
    require(columns[c].name == other.columns[c].name, "column {} is {} in {}, and {} in {}", c + 1,
            csvField(columns[c].name), here, csvField(other.columns[c].name), there);
    requireSameColumn(columns[c], other.columns[c], here, there);
  }
}

void InputDescription::requireSameTensors(const InputDescription& other, std::string_view here,
                                          std::string_view there) const {
  constexpr std::string_view kAdvice =
      "read the data by the model's own description (Network::inputDescription, readInputDescription)";
  requireSame(other, here, there);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    auto mine = columns[c];
    mine.separators = other.columns[c].separators;  // they say what may be read, not how
    require(mine == other.columns[c],
            "column {} has another filling, scale, quantile or order of dates in {} than in {}; {}",
            mine.name, here, there, kAdvice);
  }
  for (std::size_t t = 0; t < targets.size(); ++t)
    require(targets[t] == other.targets[t],
            "the number to predict, {}, has another mean or scale in {} than in {}; {}", targets[t].name,
            here, there, kAdvice);
}

void requireSameInput(const DataSetIterator& data, const InputDescription& model, std::string_view what) {
  const InputDescription* const described = data.description();
  if (described == nullptr || described->empty() || model.empty()) return;
  const auto isOfPictures = [](const InputDescription& d) { return d.pictures.has_value(); };
  const auto isOfTable = [](const InputDescription& d) { return !d.columns.empty(); };
  require(!(isOfPictures(*described) && isOfTable(model)),
          "{}: the data are pictures, and the model is one of a table", what);
  require(!(isOfTable(*described) && isOfPictures(model)),
          "{}: the data are a table, and the model is one of pictures", what);
  try {
    described->requireSameTensors(model, "the data", "the model");
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{}: {}", what, error.what()));
  }
}

}  // namespace muster
