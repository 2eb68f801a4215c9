#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "muster/datasets/picture_model.h"
#include "muster/datasets/predictions.h"
#include "muster/datasets/table.h"
#include "muster/datasets/table_model.h"

// Predictions as CSV: the most probable class, its probability and those of all classes; or the numbers.

namespace muster {

/// The names of the columns that `csvRow` writes, with commas between them.
std::string csvHeader(const Predictions& predictions);
/// The prediction of a row, from 0, with commas between its values.
std::string csvRow(const Predictions& predictions, std::int64_t row);

/// Columns of a table that are repeated before its predictions.
class KeptColumns {
 public:
  /// @param keep  columns by name, or lists of them as in CSV: "id" or "id,size".
  /// @throws FileError for another name; InvalidArgument for one that is named twice.
  KeptColumns(Table table, const std::vector<std::string>& keep);

  /// Their names and `others`, those of the columns after them, with commas between.
  /// @throws InvalidArgument for a name that is among both.
  std::string header(const std::string& others) const;
  /// The cells of a row, from 0, with a comma after each.
  std::string row(std::int64_t row) const;

 private:
  void add(const std::string& name);

  Table table_;
  std::vector<std::size_t> columns_;
};

/// A line for each row of a new table, after a header: the columns that are kept, and the prediction.
/// @param keep  as for KeptColumns.  @throws as TableModel::predict and KeptColumns.
std::string predictionsCsv(TableModel& model, const Table& table, const std::vector<std::string>& keep = {});
/// A line for each picture, after a header: its file, and the prediction.
std::string predictionsCsv(const PicturePredictions& predictions);

}  // namespace muster
