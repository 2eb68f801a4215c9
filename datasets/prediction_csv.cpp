#include "muster/datasets/prediction_csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/text_table.h"
#include "muster/core/io/json_value.h"
#include "muster/datasets/cell_values.h"

namespace muster {

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
  for (const float value : values) text += fmt::format("{}{}", text.empty() ? "" : ",", value);
  return text;
}

KeptColumns::KeptColumns(Table table, const std::vector<std::string>& keep) : table_(std::move(table)) {
  for (const auto& names : keep) {
    if (std::ranges::find(table_.names(), names) != table_.names().end()) {  // its name may have commas
      columns_.push_back(table_.labelColumn(names));
      continue;
    }
    for (const auto& name : csvFields(names)) {
      require(!trimmed(name).empty(), "columns to keep, {}: one of them has no name", quoteJson(names));
      columns_.push_back(table_.labelColumn(name));
    }
  }
}

std::string KeptColumns::header() const {
  std::string text;
  for (const auto column : columns_) text += csvField(table_.names()[column]) + ",";
  return text;
}

std::string KeptColumns::row(std::int64_t row) const {
  std::string text;
  for (const auto column : columns_) text += csvField(table_.cell(row, column)) + ",";
  return text;
}

std::string predictionsCsv(TableModel& model, const Table& table, const std::vector<std::string>& keep) {
  const KeptColumns kept(table, keep);
  const auto predictions = model.predict(table);
  auto text = fmt::format("{}{}\n", kept.header(), csvHeader(predictions));
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
