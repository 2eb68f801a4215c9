#include "muster/datasets/source/data_source.h"

#include <fmt/format.h>

#include <cmath>

#include "muster/core/base/error.h"
#include "muster/core/base/nearest_word.h"
#include "muster/core/base/plural.h"
#include "muster/datasets/source/detail/data_fields.h"
#include "muster/datasets/source/detail/field_rules.h"
#include "muster/datasets/source/named_images.h"

namespace muster {

using detail::kMostCounted;
using detail::requireBetween;
using detail::requireNotNegative;

namespace {

/// Whether a separator is the tab, as itself, as a shell passes it on, or by its name.
bool isTab(std::string_view separator) {
  return separator == "\t" || separator == "\\t" || separator == "tab";
}

void requireCounts(const DataSource& of) {
  requireBetween("data.batch", of.batch, 1, 65536);
  requireBetween("data.seed", of.seed, 0, kMostCounted);
  requireBetween("data.trainExamples", of.trainExamples, 0, kMostCounted);
  requireBetween("data.testExamples", of.testExamples, 0, kMostCounted);
  requireBetween("data.validationExamples", of.validationExamples, 0, kMostCounted);
  requireBetween("data.splitSeed", of.splitSeed, -1, kMostCounted);
  require(of.testExamples == 0 || (of.test.empty() && of.testImages.empty()),
          "data.testExamples: they are held out of the training examples, and this run has a test set, {}",
          of.test.empty() ? of.testImages : of.test);
}

/// The files that data of its type need.
void requireFiles(const DataSource& of) {
  const auto needs = [&](std::string_view field, const std::string& value) {
    require(!value.empty(), "data.{}: is missing, and data of type {} need it", field, of.type);
  };
  if (of.type == "idx") {
    needs("trainImages", of.trainImages);
    needs("trainLabels", of.trainLabels);
    require(of.testImages.empty() == of.testLabels.empty(),
            "data.testImages and data.testLabels go together, and one is missing");
  }
  if (of.type == "csv" || of.type == "images" || of.type == "safetensors") needs("train", of.train);
}

void requireClassWeights(const DataSource& of) {
  const auto& weights = of.classWeights;
  const auto& names = of.weightedClasses;
  require(names.empty() || names.size() == weights.size(), "data.classWeights: there are {} for {} of them",
          plural(weights.size(), "weight"), plural(names.size(), "name"));
  for (std::size_t c = 0; c < weights.size(); ++c) {
    const auto field =
        names.empty() ? fmt::format("data.classWeights[{}]", c) : "data.classWeights." + names[c];
    requireNotNegative(field, weights[c]);
    require(std::isfinite(static_cast<float>(weights[c])), "{} must fit a float32, got {}", field,
            weights[c]);
  }
  require(!names.empty() || weights.size() != 1,
          "data.classWeights: at least two classes have weights, got 1");
}

}  // namespace

DataSource DataSource::parse(std::string_view json) {
  JsonReader reader(json);
  DataSource source;
  detail::visitData(reader, source);
  reader.finish();
  source.validate();
  return source;
}

std::string DataSource::toJson() const {
  DataSource copy = *this;  // visits need mutable references
  JsonWriter writer;
  detail::visitData(writer, copy);
  return writer.text();
}

void DataSource::validate() const {
  require(std::ranges::find(kDataTypes, type) != kDataTypes.end(), "data.type: there is no type \"{}\"{}",
          type, nearestOfHint(type, std::vector<std::string>(kDataTypes.begin(), kDataTypes.end())));
  requireCounts(*this);
  requireBetween("data.classes", classes, 2, 256);
  requireBetween("data.height", height, 0, 1 << 15);
  requireBetween("data.width", width, 0, 1 << 15);
  require((height == 0) == (width == 0), "data.height and data.width go together, and one is 0");
  require(separator.size() == 1 || isTab(separator),
          "data.separator must be one character, or tab, got \"{}\"", separator);
  requireFiles(*this);
  requireClassWeights(*this);
  require(std::ranges::find(kDateOrders, dateOrder) != kDateOrders.end(),
          "data.dateOrder: there is no order \"{}\"{}", dateOrder,
          nearestOfHint(dateOrder, std::vector<std::string>(kDateOrders.begin(), kDateOrders.end())));
}

TableFormat DataSource::tableFormat() const {
  return {.header = header, .separator = isTab(separator) ? '\t' : separator.front()};
}

TableOptions DataSource::tableOptions() const {
  TableOptions options{.label = label, .regression = regression, .columns = columns, .leaveOut = leaveOut};
  for (const auto& [order, name] : EnumNames<DateOrder>::kNames)
    if (name == dateOrder) options.dateOrder = order;
  return options;
}

std::vector<std::pair<std::string, std::filesystem::path>> DataSource::files() const {
  std::vector<std::pair<std::string, std::filesystem::path>> all{{"data.train", train},
                                                                 {"data.test", test},
                                                                 {"data.trainImages", trainImages},
                                                                 {"data.trainLabels", trainLabels},
                                                                 {"data.testImages", testImages},
                                                                 {"data.testLabels", testLabels}};
  std::erase_if(all, [](const auto& named) { return named.second.empty(); });
  const auto published = publishedFiles(*this);
  all.insert(all.end(), published.begin(), published.end());
  return all;
}

}  // namespace muster
