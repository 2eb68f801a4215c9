#include "muster/datasets/source/detail/table_rows.h"

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/data/in_memory.h"
#include "muster/datasets/detail/class_names.h"
#include "muster/datasets/detail/unknown_words.h"
#include "muster/datasets/source/detail/deal_rows.h"
#include "muster/datasets/source/detail/held_out.h"
#include "muster/datasets/source/detail/known_columns.h"
#include "muster/datasets/table_description.h"
#include "muster/datasets/table_examples.h"

namespace muster::detail {
namespace {

/// Rows of a table as an iterator, for training if there is a seed.
std::unique_ptr<InMemoryDataSetIterator> rowsOf(const Table& table, const InputDescription& description,
                                                std::span<const std::int64_t> rows, std::int64_t batch,
                                                std::optional<std::uint64_t> seed = std::nullopt) {
  return std::make_unique<InMemoryDataSetIterator>(tableIterator(description, table, rows, batch, seed));
}

const std::vector<std::int64_t>& rowsOf(const DataRows& rows, std::string_view part) {
  return part == "test" ? rows.test : part == "validation" ? rows.validation : rows.train;
}

/// The column of the labels.
const std::string& labelOf(const InputDescription& description) {
  return description.targets.empty() ? description.label : description.targets.front().name;
}

/// [row] The class, or 0 for a row that has none or is of a regression.
std::vector<std::int64_t> classesOf(const Table& table, const InputDescription& description) {
  std::vector<std::int64_t> classes(static_cast<std::size_t>(table.rows()));
  if (!description.targets.empty()) return classes;
  const ClassNumbers known(description.classes);
  const auto place = table.labelColumn(description.label);
  for (std::int64_t row = 0; row < table.rows(); ++row)
    classes[static_cast<std::size_t>(row)] = known.find(table.cell(row, place)).value_or(0);
  return classes;
}

}  // namespace

std::vector<std::uint64_t> dealTestTable(const DataSource& d, LoadedData& into, bool logs) {
  into.description = withOrder(std::move(into.description), d);
  const auto test = readTable(d.test, d.tableFormat());
  auto labelled = labelledRows(test, labelOf(into.description), d.regression);
  if (const auto without = test.rows() - std::ssize(labelled); logs && without > 0) {
    const auto words = unlabelledWords(test, labelOf(into.description), d.regression);
    logInfo("{}: {} without {}{} not tested", d.test, plural(without, "row"), labelOf(into.description),
            words.empty() ? "" : fmt::format(" ({})", words));
  }
  into.test = rowsOf(test, into.description, labelled, d.batch);
  if (logs) logUnknownWords(into.description, test, labelled);
  into.rows.test = std::move(labelled);
  return hashesOf(test, into.description, into.rows.test);
}

PartHashes dealTable(const DataSource& d, const InputDescription& known, LoadedData& into,
                     std::string_view part) {
  const auto ordered = withOrder(known, d);
  const auto options = d.tableOptions();
  const auto train = readTable(d.train, d.tableFormat());
  const auto count = std::ssize(labelledRows(train, d.label, d.regression));
  auto tested = splitTable(train, options, untestedPart(d, count), splitSeed(d));
  auto split =
      splitTable(train, options, tested.first, trainingPart(d, std::ssize(tested.first)), splitSeed(d));
  into.rows = {std::move(split.first), std::move(split.second), std::move(tested.second)};
  const auto& rows = into.rows;
  into.description = describeTable(train, withoutOmitted(options, train, known), rows.train);
  if (!known.empty()) {
    requireSameColumns(into.description, known, d, train, rows.train);
    into.description = ordered;
    if (part.empty())
      logUnknownWords(known, train);
    else if (const auto& wanted = rowsOf(rows, part); !wanted.empty())
      logUnknownWords(known, train, wanted);
  } else {
    for (const auto* const heldOut : {&rows.validation, &rows.test}) {
      logStrayValues(into.description, train, *heldOut);
      addDateSeparators(into.description, train, *heldOut);
    }
  }
  into.heldOutWarnings =
      lackingClasses(d, classesOf(train, into.description), rows, into.description.classes);
  auto training = rowsOf(train, into.description, rows.train, d.batch, shuffleSeed(d));
  dropLast(d, *training);
  into.train = std::move(training);
  if (!rows.validation.empty()) into.validation = rowsOf(train, into.description, rows.validation, d.batch);
  if (!rows.test.empty()) into.test = rowsOf(train, into.description, rows.test, d.batch);
  const auto hashes = [&](std::span<const std::int64_t> of) { return hashesOf(train, into.description, of); };
  PartHashes parts{hashes(rows.train), hashes(rows.validation), hashes(rows.test), !d.test.empty()};
  if (parts.ownTest) parts.test = dealTestTable(d, into, part.empty() || part == "test");
  return parts;
}

}  // namespace muster::detail
