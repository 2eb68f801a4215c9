#pragma once

// Visits the fields of a data source: the same code reads (JsonReader), writes (JsonWriter) and describes
// (SchemaWriter) them.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <concepts>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/io/detail/schema_writer.h"
#include "muster/core/io/json_fields.h"
#include "muster/core/io/json_value.h"
#include "muster/datasets/source/data_source.h"
#include "muster/datasets/source/detail/field_rules.h"

namespace muster::detail {

inline bool isOneOf(std::string_view type, std::initializer_list<std::string_view> types) {
  return std::ranges::find(types, type) != types.end();
}

/// Visits a list of texts; files leave out an empty one.
inline void texts(JsonReader& reader, std::string_view name, std::vector<std::string>& value) {
  reader.strings(name, value);
}
inline void texts(JsonWriter& writer, std::string_view name, std::vector<std::string>& value) {
  if (!value.empty()) writer.put(name, std::span<const std::string>(value));
}
inline void texts(SchemaWriter& writer, std::string_view name, std::vector<std::string>& value) {
  boost::json::array preset(value.begin(), value.end());
  writer.put(name,
             {{"type", "array"}, {"items", boost::json::object{{"type", "string"}}}, {"default", preset}});
}

/// Visits a text that is one of `words`; the default is the first one.
template <typename Visitor>
void visitWord(Visitor& v, std::string_view name, std::string& value,
               std::span<const std::string_view> words) {
  const auto found = std::ranges::find(words, value);
  auto index = found == words.end() ? 0 : static_cast<std::size_t>(found - words.begin());
  v.choice(name, index, words);
  value = words[index];
}

/// Visits the name of a column; a file may also have its number as a number.
inline void columnName(JsonReader& reader, std::string_view name, std::string& value) {
  const auto text = reader.json(name);
  if (const auto given = text ? parseJson(*text) : nullptr; given.is_int64())
    value = fmt::format("{}", given.get_int64());
  else
    reader.field(name, value);
}
inline void columnName(JsonWriter& writer, std::string_view name, std::string& value) {
  writer.field(name, value);
}
inline void columnName(SchemaWriter& writer, std::string_view name, std::string& value) {
  writer.put(name, {{"type", boost::json::array{"string", "integer"}}, {"default", value}});
}

/// Visits the order of a date's parts; files leave out the one that is found out.
template <typename Visitor>
void visitDateOrder(Visitor& v, DataSource& d) {
  if (std::same_as<Visitor, JsonWriter> && d.dateOrder == kDateOrders.front()) return;
  v.describe("which part of a date is first where the year is last, as in 3/4/2020; auto: found out");
  visitWord(v, "dateOrder", d.dateOrder, kDateOrders);
}

/// Visits the weights of classes: a list, or an object by the names of classes.
inline void classWeights(JsonReader& reader, std::string_view name, DataSource& d) {
  const auto text = reader.json(name);
  if (!text) return;
  const auto given = parseJson(*text);
  d.weightedClasses.clear();
  if (!given.is_object()) return reader.numbers(name, d.classWeights);
  for (const auto& one : given.get_object()) d.weightedClasses.emplace_back(one.key());
  d.classWeights.assign(d.weightedClasses.size(), 1);
  reader.group(name, [&](JsonReader& in) {
    for (std::size_t i = 0; i < d.classWeights.size(); ++i) in.field(d.weightedClasses[i], d.classWeights[i]);
  });
}
inline void classWeights(JsonWriter& writer, std::string_view name, DataSource& d) {
  if (d.weightedClasses.empty()) return writer.numbers(name, d.classWeights);
  writer.group(name, [&](JsonWriter& in) {
    for (std::size_t i = 0; i < d.classWeights.size(); ++i) in.put(d.weightedClasses[i], d.classWeights[i]);
  });
}
inline void classWeights(SchemaWriter& writer, std::string_view name, DataSource&) {
  const boost::json::object number{{"type", "number"}, {"minimum", 0}};
  writer.put(name, {{"anyOf", boost::json::array{boost::json::object{{"type", "array"}, {"items", number}},
                                                 boost::json::object{{"type", "object"},
                                                                     {"additionalProperties", number}}}}});
}

template <typename Visitor>
void visitSource(Visitor& v, DataSource& d) {
  const bool published =
      d.type == kMnistOrGenerated || std::ranges::find(kPublishedData, d.type) != kPublishedData.end();
  if (published)
    v.field("directory", d.directory,
            "where the files are; empty: MUSTER_DATA_DIR, the cache, or a download");
  if (published || isOneOf(d.type, {"generated", "mixtures"}))
    v.field("trainExamples", d.trainExamples, "training examples to use, each class in equal shares; 0: all",
            kCountedRange);
  if (d.type == "idx") {
    v.field("trainImages", d.trainImages, "IDX file");
    v.field("trainLabels", d.trainLabels, "IDX file");
    v.field("testImages", d.testImages, "IDX file; empty: no test");
    v.field("testLabels", d.testLabels, "IDX file");
    v.field("classes", d.classes, "number of classes, from 2", "[2, 256]");
  }
  if (isOneOf(d.type, {"csv", "images", "safetensors"})) {
    v.field(
        "train", d.train,
        "the file to train with; for images a directory with one folder for each class; for safetensors the "
        "tensors features and labels, of padded sequences also featuresMask, float32 [N, T], and for weights "
        "labelsMask");
    v.field("test", d.test, "the file or directory to test with; empty: no test");
  }
  if (d.type == "csv") {
    v.field("header", d.header, "the first line has the names of the columns");
    v.describe("column to predict, by its name or its number from 1; empty: the last one", "[1, )");
    columnName(v, "label", d.label);
    v.field("separator", d.separator, "one character, or tab");
    v.field("regression", d.regression, "the label is a number to predict, not a class");
    v.describe("columns to learn from; empty: all but the label");
    texts(v, "columns", d.columns);
    v.describe("columns not to learn from");
    texts(v, "leaveOut", d.leaveOut);
    visitDateOrder(v, d);
  }
  if (d.type == "images") {
    v.field("grey", d.grey, "reads pictures as grey");
    v.field("height", d.height, "pictures are stretched to it; 0: all have one size", "[0, 32768]");
    v.field("width", d.width, "pictures are stretched to it; 0: all have one size", "[0, 32768]");
  }
}

template <typename Visitor>
void visitData(Visitor& v, DataSource& d) {
  if constexpr (std::same_as<Visitor, JsonReader>) v.requireField("type");
  v.describe("where the data come from; mnistOrGenerated: MNIST, or generated digits where there is none");
  visitWord(v, "type", d.type, kDataTypes);
  visitSource(v, d);
  v.field(
      "testExamples", d.testExamples,
      "test examples to use, each class in equal shares; 0: all. Data of your own without a test set: held "
      "out from the training examples",
      kCountedRange);
  v.field("validationExamples", d.validationExamples,
          "held out from the training examples, drawn by splitSeed: for early stopping, the best checkpoint "
          "and the last lines",
          kCountedRange);
  v.field("splitSeed", d.splitSeed,
          "draws what is held out; -1: the same as seed, so that another seed holds out other examples",
          "[-1, 1099511627776]");
  v.field("batch", d.batch, "examples in a batch of one worker", "[1, 65536]");
  v.field("dropLast", d.dropLast, "leaves out the last batch of an epoch if it is not full");
  v.field("seed", d.seed,
          "of the order of the training examples; unless splitSeed is set, also draws what is held out",
          kCountedRange);
  v.field("shuffle", d.shuffle, "the training examples have a new order in each epoch");
  v.describe(
      "factor of each class in the loss: by the classes' names, others have 1, or a list in the order of the "
      "classes, which muster plan shows; empty: 1 for each");
  classWeights(v, "classWeights", d);
}

}  // namespace muster::detail
