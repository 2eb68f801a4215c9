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

/// Divides the rows with a label at random into `count` to train with and the others, each class in equal
/// shares. Logs how many rows have no label. @throws as labelledRows and splitRows, and FileError for labels
/// that are no classes (`readCsv`).
RowSplit splitTable(const Table& table, const TableOptions& options, std::int64_t count, std::uint64_t seed);
/// As above, these rows alone. @param rows  as from labelledRows, or a part of a split.
RowSplit splitTable(const Table& table, const TableOptions& options, std::span<const std::int64_t> rows,
                    std::int64_t count, std::uint64_t seed);

/// Finds out from training rows how a table's columns become features:
///
/// - numbers, if at least nine in ten values are numbers, plain or of one unit (words count as missing); a
///   column of many magnitudes, whose largest magnitude is over 100 times the median one, has its signed
///   logarithm beside it, and one of more than 5 different values its rank among 65 quantiles, from 0 to 1;
/// - dates, if at least nine in ten values are dates in one order (`daysIn`), and none of them in another,
///   beside any whose year is first;
///   where 3/4/2020 may be both the month is first, and of 3.4.2020 the day, with a warning. With the time of
///   the year if they span over a year, the day of the week if they span over two weeks, and the time of the
///   day if one is given;
/// - else words: a feature for each of at most 256 words, the most frequent ones that occur in at least 3
///   rows; the others share a feature;
/// - a missing value counts as the column's median, or as no word; if training rows had gaps, a last
///   feature is 1 there.
///
/// Left out are columns without a value or with only one, words that nearly all differ, and whole numbers
/// that all differ and count from 0 or 1 in the whole table, or are one more (or less) from row to row, of 20
/// rows or more, and no years from 1500 to 2200: they identify rows. `InputDescription::omitted`
/// gives the reasons.
/// @param rows  the training rows, all with labels.
/// @throws FileError for a column that is missing, a label that is no number for a regression, or no class
///         (`readCsv`), decimal commas, or if no column is left.
InputDescription describeTable(const Table& table, const TableOptions& options,
                               std::span<const std::int64_t> rows);

}  // namespace muster
