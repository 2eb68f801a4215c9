#include "muster/datasets/table_description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/base/text_table.h"
#include "muster/core/io/json_value.h"
#include "muster/datasets/cell_values.h"
#include "muster/datasets/detail/class_names.h"
#include "muster/datasets/detail/csv_rows.h"
#include "muster/datasets/detail/describe_column.h"
#include "muster/datasets/detail/number_text.h"
#include "muster/datasets/detail/unknown_words.h"

namespace muster {
namespace {

/// @throws FileError for a name that the table does not have; InvalidArgument for one that is given twice.
std::set<std::size_t> columnsNamed(const Table& table, std::span<const std::string> names,
                                   std::string_view what) {
  std::set<std::size_t> found;
  for (const auto& name : names) {
    const auto column = table.find(trimmed(name));
    if (!column) throw FileError(table.origin(), detail::noColumn(name, table.names()));
    require(found.insert(*column).second, "column {} is given twice among those {}",
            csvField(table.names()[*column]), what);
  }
  return found;
}

double target(const Table& table, std::int64_t row, std::size_t column, const NumberText& text) {
  const auto value = numberIn(table.cell(row, column), text);
  if (!value)
    detail::failAtLine(
        table.origin(), table.line(row),
        fmt::format("column {} must be {}, and is {}", csvField(table.names()[column]),
                    numberWanted(table.cell(row, column), text), quoteJson(table.cell(row, column))));
  return *value;
}

/// Warns if most numbers to predict are equal for a network, which sees them scaled and in float32.
void warnOfOutlier(const Table& table, std::size_t column, std::span<const std::int64_t> rows,
                   const std::vector<double>& numbers, double mean, double deviation) {
  std::set<double> different(numbers.begin(), numbers.end());
  std::set<float> scaled;
  for (const double x : numbers) scaled.insert(static_cast<float>((x - mean) / deviation));
  if (2 * scaled.size() >= different.size()) return;
  const auto largest = std::ranges::max_element(numbers, {}, [&](double x) { return std::abs(x - mean); });
  const auto row = rows[static_cast<std::size_t>(largest - numbers.begin())];
  logWarning(
      "column {}: float32 tells {} of its {} different numbers apart, beside {} in line {}; leave such rows "
      "out, or predict another number, as its logarithm",
      csvField(table.names()[column]), scaled.size(), different.size(), quoteJson(table.cell(row, column)),
      table.line(row));
}

TargetColumn scaleOf(const Table& table, std::size_t column, std::span<const std::int64_t> rows) {
  std::map<std::string_view, std::int64_t> words;
  for (const auto row : rows) ++words[table.cell(row, column)];
  const auto text = detail::numberTextOf(table, column, words).value_or(NumberText{});
  std::vector<double> numbers;
  for (const auto row : rows) numbers.push_back(target(table, row, column, text));
  detail::requireNotTiny(table, table.names()[column], numbers);
  if (numbers.size() > 1 && std::ranges::all_of(numbers, [&](double x) { return x == numbers.front(); }))
    throw FileError(
        table.origin(),
        fmt::format("column {} is to be predicted, and every row to train with has {}; a regression "
                    "needs different numbers, and data.label=NAME names another column",
                    csvField(table.names()[column]), quoteJson(table.cell(rows.front(), column))));
  const double mean =
      std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
  double squares = 0;
  for (const double number : numbers) squares += std::pow(number - mean, 2);
  const double deviation = std::sqrt(squares / static_cast<double>(rows.size()));
  warnOfOutlier(table, column, rows, numbers, mean, deviation);
  return {.name = table.names()[column], .mean = mean, .scale = deviation > 0 ? deviation : 1, .text = text};
}

std::vector<std::string> classesIn(const Table& table, std::size_t column,
                                   std::span<const std::int64_t> rows) {
  std::set<std::string, std::less<>> words;
  for (const auto row : rows)
    if (const auto word = table.cell(row, column); !words.contains(word)) words.emplace(word);
  return detail::classesOf(words, std::ssize(rows), table.names()[column], table.origin());
}

/// Warns of classes that may be one, as "Stays" and "stays".
void warnOfTwins(const InputDescription& described) {
  const auto& classes = described.classes;
  for (auto one = classes.begin(); one != classes.end(); ++one)
    if (const auto twin = std::find_if(one + 1, classes.end(),
                                       [&](const auto& other) { return detail::looksLike(*one, other); });
        twin != classes.end())
      logWarning("column {}: {} and {} are two classes, although they look like one",
                 csvField(described.label), quoteJson(*one), quoteJson(*twin));
}

/// Warns of classes with a single row, in a table that has some rows.
void warnOfSingles(const Table& table, std::size_t label, const std::vector<std::string>& classes) {
  constexpr std::int64_t kLeast = 20;  // rows; of fewer, a test says little of any class
  if (table.rows() < kLeast) return;
  const detail::ClassNumbers known(classes);
  std::vector<std::int64_t> counts(classes.size()), lines(classes.size());  // [class]
  for (std::int64_t row = 0; row < table.rows(); ++row)
    if (const auto found = known.find(table.cell(row, label))) {
      ++counts[static_cast<std::size_t>(*found)];
      lines[static_cast<std::size_t>(*found)] = table.line(row);
    }
  const auto one = std::ranges::find(counts, 1);
  if (one == counts.end()) return;
  const auto c = static_cast<std::size_t>(one - counts.begin());
  const auto singles = std::ranges::count(counts, 1);
  logWarning("column {}: {}class {} has one row, in line {}, which cannot be both learned from and tested",
             csvField(table.names()[label]),
             singles == 1 ? "" : fmt::format("{} classes have one row; ", singles), quoteJson(classes[c]),
             lines[c]);
}

/// Warns of a first row that has a word in each column which occurs nowhere else there, if the table is said
/// to have no header.
void warnOfHeader(const Table& table) {
  if (table.format().header || table.rows() < 3) return;
  for (std::size_t c = 0; c < table.names().size(); ++c) {
    const auto first = table.cell(0, c);
    if (isMissingNumber(first) || numberIn(first)) return;
    for (std::int64_t row = 1; row < table.rows(); ++row)
      if (table.cell(row, c) == first) return;
  }
  logWarning(
      "{}: line {} looks like the names of the columns, with {} in the first; data.header=true reads it "
      "as names",
      table.origin().string(), table.line(0), quoteJson(table.cell(0, 0)));
}

/// [row] The number of its class, in the order of their first rows.
std::vector<std::int64_t> classNumbers(const Table& table, std::size_t column,
                                       std::span<const std::int64_t> rows) {
  const detail::ClassNumbers known(classesIn(table, column, rows));
  std::map<std::int64_t, std::int64_t> places;
  std::vector<std::int64_t> numbers;
  for (const auto row : rows)
    numbers.push_back(places.emplace(*known.find(table.cell(row, column)), std::ssize(places)).first->second);
  return numbers;
}

/// @throws FileError if several columns have this one's name.
void requireUniqueName(const Table& table, std::size_t column) {
  static_cast<void>(table.find(table.names()[column]));
}

}  // namespace

std::vector<std::int64_t> labelledRows(const Table& table, const std::string& label, bool regression) {
  const auto column = table.labelColumn(label);
  std::vector<std::int64_t> rows;
  for (std::int64_t r = 0; r < table.rows(); ++r)
    if (const auto cell = table.cell(r, column); regression ? !isMissingNumber(cell) : !isMissing(cell))
      rows.push_back(r);
  if (!rows.empty()) return rows;
  const auto words = unlabelledWords(table, label, regression);
  throw FileError(table.origin(),
                  fmt::format("no row has a {}{}", table.names()[column],
                              words.empty() ? "" : fmt::format("; cells with {} count as none", words)));
}

std::string unlabelledWords(const Table& table, const std::string& label, bool regression) {
  const auto column = table.labelColumn(label);
  std::set<std::string_view> words;
  for (std::int64_t r = 0; r < table.rows(); ++r)
    if (const auto cell = table.cell(r, column);
        !cell.empty() && (regression ? isMissingNumber(cell) : isMissing(cell)))
      words.insert(cell);
  return fmt::format("{}", fmt::join(words, ", "));
}

RowSplit splitTable(const Table& table, const TableOptions& options, std::int64_t count, std::uint64_t seed) {
  const auto rows = labelledRows(table, options.label, options.regression);
  const auto column = table.labelColumn(options.label);
  if (const auto without = table.rows() - std::ssize(rows); without > 0) {
    const auto words = unlabelledWords(table, options.label, options.regression);
    logInfo("{}: {} without {}{} {} left out", table.origin().string(), plural(without, "row"),
            table.names()[column], words.empty() ? "" : fmt::format(" ({})", words),
            without == 1 ? "is" : "are");
  }
  return splitTable(table, options, rows, count, seed);
}

RowSplit splitTable(const Table& table, const TableOptions& options, std::span<const std::int64_t> rows,
                    std::int64_t count, std::uint64_t seed) {
  const auto column = table.labelColumn(options.label);
  auto split = options.regression ? splitRows(std::ssize(rows), count, seed)
                                  : splitRows(classNumbers(table, column, rows), count, seed);
  for (auto* part : {&split.first, &split.second})
    for (auto& row : *part) row = rows[static_cast<std::size_t>(row)];
  return split;
}

InputDescription describeTable(const Table& table, const TableOptions& options,
                               std::span<const std::int64_t> rows) {
  require(!rows.empty(), "describeTable: there are no rows");
  warnOfHeader(table);
  const auto label = table.labelColumn(options.label);
  const auto wanted = columnsNamed(table, options.columns, "to learn from (data.columns)"),
             unwanted = columnsNamed(table, options.leaveOut, "to leave out (data.leaveOut)");
  for (const auto* const columns : {&wanted, &unwanted})
    if (columns->contains(label))
      throw FileError(
          table.origin(),
          fmt::format("column {} is to be predicted, so it cannot be {}", csvField(table.names()[label]),
                      columns == &wanted ? "a column to learn from" : "left out"));
  InputDescription described{.format = table.format()};
  if (!table.format().header) described.unnamedColumns = std::ssize(table.names());
  for (std::size_t c = 0; c < table.names().size(); ++c) {
    if (c == label || unwanted.contains(c) || (!wanted.empty() && !wanted.contains(c))) continue;
    requireUniqueName(table, c);
    auto found = detail::describeColumn(table, c, rows, options.dateOrder, wanted.contains(c));
    if (auto* column = std::get_if<ColumnDescription>(&found))
      described.columns.push_back(std::move(*column));
    else
      described.omitted.push_back(std::get<OmittedColumn>(std::move(found)));
  }
  if (described.columns.empty()) {
    std::string reasons;
    for (const auto& [name, reason] : described.omitted)
      reasons += fmt::format("; {}: {}", csvField(name), reason);
    throw FileError(table.origin(), "has no column to learn from" + reasons);
  }
  if (options.regression) {
    described.targets = {scaleOf(table, label, rows)};
  } else {
    described.label = table.names()[label];
    described.classes = classesIn(table, label, rows);
    warnOfTwins(described);
    warnOfSingles(table, label, described.classes);
  }
  return described;
}

}  // namespace muster
