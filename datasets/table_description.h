#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/core/data/input_description.h"
#include "muster/core/data/split.h"
#include "muster/datasets/table.h"

namespace muster {

/// What is to be learned from a table.
struct TableOptions {
  std::string label = {};   ///< the column to predict, by its name or number from 1; empty: the last one
  bool regression = false;  ///< it is a number to predict, not a class
  std::vector<std::string> columns = {};    ///< to learn from; empty: all others
  std::vector<std::string> leaveOut = {};   ///< not to learn from
  std::optional<DateOrder> dateOrder = {};  ///< of dates whose year is last; nothing: found out
};

/// The rows that have a label, in order.
/// @param regression  the label is a number, so "-", ".", "None" and "none" are gaps, too.
/// @throws FileError if no row has one, or as `Table::labelColumn`.
std::vector<std::int64_t> labelledRows(const Table& table, const std::string& label, bool regression = false);

/// The words by which rows say that they have no label, as in "NA, ?"; "" if they are without a word.
std::string unlabelledWords(const Table& table, const std::string& label, bool regression = false);

/// Divides the rows with a label at random into `count` to train with and the others, each class in equal
/// shares. Logs how many rows have no label. @throws as labelledRows and splitRows, and FileError for labels
/// that are no classes (`readCsv`).
RowSplit splitTable(const Table& table, const TableOptions& options, std::int64_t count, std::uint64_t seed);
/// As above, these rows alone. @param rows  as from labelledRows, or a part of a split.
RowSplit splitTable(const Table& table, const TableOptions& options, std::span<const std::int64_t> rows,
                    std::int64_t count, std::uint64_t seed);

/// Finds out from training rows which of a table's columns are numbers, dates or words, and how they become
/// features: examples/docs/tables.md, "What becomes of a column". Columns that identify rows, or have only
/// one value, are left out; `InputDescription::omitted` gives the reasons. A missing value counts as the
/// column's median, or as no word; if training rows had gaps, a last feature is 1 there.
/// @param rows  the training rows, all with labels.
/// @throws FileError for a column that is missing, a label that is no number for a regression, or no class
///         (`readCsv`), decimal commas, or if no column is left.
InputDescription describeTable(const Table& table, const TableOptions& options,
                               std::span<const std::int64_t> rows);

}  // namespace muster
