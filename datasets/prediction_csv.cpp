#include "muster/datasets/prediction_csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/text_table.h"
#include "muster/core/io/json_value.h"
#include "muster/datasets/cell_values.h"

namespace muster {
namespace {

/// With the digits that a network of float32 may say something by, and after the point at least two of a
/// number below 1e9.
std::string numberText(double number) {
  const auto rounded = static_cast<float>(number);
  if (static_cast<double>(rounded) == number && std::abs(number) < 1e7) return fmt::format("{}", rounded);
  return fmt::format("{:.{}g}", number, std::abs(number) < 1e7 ? 9 : 12);
}

}  // namespace

std::string csvHeader(const Predictions& predictions) {
  const bool classes = !predictions.classes.empty();
  if (!classes && predictions.names.size() == 1) return "prediction";
  std::vector<std::string> columns;
  if (classes) columns = {"prediction", "probability"};
  for (const auto& name : predictions.names)
    columns.push_back(csvField(fmt::format("{} {}", classes ? "probability of" : "prediction of", name)));
  return fmt::format("{}", fmt::join(columns, ","));
}

std::string csvRow(const Predictions& predictions, std::int64_t row) {
  const auto width = predictions.names.size();
  const auto values = predictions.values.span<float>().subspan(static_cast<std::size_t>(row) * width, width);
  std::string text;
  if (!predictions.classes.empty()) {
    const auto& best = predictions.classes[static_cast<std::size_t>(row)];
    const auto place = std::ranges::find(predictions.names, best) - predictions.names.begin();
    text = fmt::format("{},{}", csvField(best), values[static_cast<std::size_t>(place)]);
  }
  for (std::size_t i = 0; i < width; ++i)
    text += fmt::format("{}{}", text.empty() ? "" : ",",
                        predictions.numbers.empty()
                            ? fmt::format("{}", values[i])
                            : numberText(predictions.numbers[static_cast<std::size_t>(row) * width + i]));
  return text;
}

KeptColumns::KeptColumns(Table table, const std::vector<std::string>& keep) : table_(std::move(table)) {
  for (const auto& names : keep) {
    if (std::ranges::find(table_.names(), names) != table_.names().end()) {  // its name may have commas
      add(names);
      continue;
    }
    for (const auto& name : csvFields(names)) {
      require(!trimmed(name).empty(), "columns to keep, {}: one of them has no name", quoteJson(names));
      add(name);
    }
  }
}

void KeptColumns::add(const std::string& name) {
  const auto column = table_.labelColumn(name);
  require(std::ranges::find(columns_, column) == columns_.end(), "columns to keep: {} is named twice",
          csvField(table_.names()[column]));
  columns_.push_back(column);
}

std::string KeptColumns::header(const std::string& others) const {
  const auto written = csvFields(others);
  std::string text;
  for (const auto column : columns_) {
    const auto& name = table_.names()[column];
    require(std::ranges::find(written, name) == written.end(),
            "columns to keep: the output has a column {} of its own; keep others, or rename it in the table",
            csvField(name));
    text += csvField(name) + ",";
  }
  return text + others;
}

std::string KeptColumns::row(std::int64_t row) const {
  std::string text;
  for (const auto column : columns_) text += csvField(table_.cell(row, column)) + ",";
  return text;
}

std::string predictionsCsv(TableModel& model, const Table& table, const std::vector<std::string>& keep) {
  const KeptColumns kept(table, keep);
  const auto predictions = model.predict(table);
  auto text = kept.header(csvHeader(predictions)) + "\n";
  for (std::int64_t row = 0; row < table.rows(); ++row)
    text += fmt::format("{}{}\n", kept.row(row), csvRow(predictions, row));
  return text;
}

std::string predictionsCsv(const PicturePredictions& predictions) {
  std::string text = fmt::format("file,{}\n", csvHeader(predictions));
  for (std::size_t i = 0; i < predictions.files.size(); ++i)
    text += fmt::format("{},{}\n", csvField(predictions.files[i]),
                        csvRow(predictions, static_cast<std::int64_t>(i)));
  return text;
}

}  // namespace muster
