#include "muster/datasets/source/detail/table_rows.h"

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/data/in_memory.h"
#include "muster/datasets/source/detail/held_out.h"
#include "muster/datasets/table_examples.h"

namespace muster::detail {
namespace {

/// Rows of a table as an iterator, for training if there is a seed.
std::unique_ptr<InMemoryDataSetIterator> rowsOf(const Table& table, const InputDescription& description,
                                                std::span<const std::int64_t> rows, std::int64_t batch,
                                                std::optional<std::uint64_t> seed = std::nullopt) {
  return std::make_unique<InMemoryDataSetIterator>(tableIterator(description, table, rows, batch, seed));
}

/// The column of the labels.
const std::string& labelOf(const InputDescription& description) {
  return description.targets.empty() ? description.label : description.targets.front().name;
}

}  // namespace

void dealTestTable(const DataSource& d, LoadedData& into) {
  const auto test = readTable(d.test, d.tableFormat());
  const auto labelled = labelledRows(test, labelOf(into.description), d.regression);
  if (const auto without = test.rows() - std::ssize(labelled); without > 0)
    logInfo("{}: {} without {} not tested", d.test, plural(without, "row"), labelOf(into.description));
  into.test = rowsOf(test, into.description, labelled, d.batch);
}

void dealTable(const DataSource& d, const InputDescription& known, LoadedData& into) {
  const auto options = d.tableOptions();
  const auto train = readTable(d.train, d.tableFormat());
  const auto count = std::ssize(labelledRows(train, d.label, d.regression));
  const auto tested = splitTable(train, options, untestedPart(d, count), splitSeed(d));
  const auto split =
      splitTable(train, options, tested.first, trainingPart(d, std::ssize(tested.first)), splitSeed(d));
  into.description = describeTable(train, options, split.first);
  if (!known.empty()) {
    into.description.requireSame(known, d.train, "the model");
    into.description = known;
  }
  auto training = rowsOf(train, into.description, split.first, d.batch, shuffleSeed(d));
  dropLast(d, *training);
  into.train = std::move(training);
  if (!split.second.empty()) into.validation = rowsOf(train, into.description, split.second, d.batch);
  if (!tested.second.empty()) into.test = rowsOf(train, into.description, tested.second, d.batch);
  if (!d.test.empty()) dealTestTable(d, into);
}

}  // namespace muster::detail
