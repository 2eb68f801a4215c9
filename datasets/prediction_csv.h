#pragma once

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

/// A line for each row of a new table, after a header: the columns that are kept, and the prediction.
/// @param keep  columns of the table by name, or lists of them as in CSV: "id" or "id,size".
/// @throws FileError as TableModel::predict, and for another name.
std::string predictionsCsv(TableModel& model, const Table& table, const std::vector<std::string>& keep = {});
/// A line for each picture, after a header: its file, and the prediction.
std::string predictionsCsv(const PicturePredictions& predictions);

}  // namespace muster
