#include "muster/datasets/source/detail/known_columns.h"

#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/base/text_table.h"
#include "muster/datasets/cell_values.h"
#include "muster/datasets/detail/date_order.h"
#include "muster/datasets/detail/describe_column.h"

namespace muster::detail {
namespace {

template <typename Column>
bool has(const std::vector<Column>& columns, const std::string& name) {
  return std::ranges::find(columns, name, &Column::name) != columns.end();
}

bool among(const std::vector<std::string>& some, std::string_view name) {
  return std::ranges::any_of(some, [&](const std::string& one) { return trimmed(one) == name; });
}

/// @throws InvalidArgument if the source leaves out a column from which a model has learned.
void requireNoneLeftOut(const InputDescription& known, const DataSource& d, const Table& table) {
  for (const auto& column : known.columns) {
    if (!table.find(column.name)) continue;
    require(d.columns.empty() || among(d.columns, column.name),
            "data.columns does not name column {}, from which the model has learned", csvField(column.name));
    require(!among(d.leaveOut, column.name),
            "data.leaveOut names column {}, from which the model has learned", csvField(column.name));
  }
}

/// Whether rows have a word that a model knows in this column.
bool hasKnownWord(const Table& table, const ColumnDescription& column, std::span<const std::int64_t> rows) {
  const auto place = column.kind == ColumnKind::Words ? table.find(column.name) : std::nullopt;
  return place && std::ranges::any_of(rows, [&](std::int64_t row) {
           return std::ranges::binary_search(column.words, table.cell(row, *place));
         });
}

}  // namespace

TableOptions withoutOmitted(TableOptions options, const Table& table, const InputDescription& known) {
  if (known.empty()) return options;
  const auto& names = table.names();
  const auto& label = names[table.labelColumn(options.label)];
  std::erase_if(options.leaveOut, [&](const std::string& name) { return !among(names, trimmed(name)); });
  for (const auto& column : known.omitted)
    if (column.name != label && among(names, column.name) && !among(options.columns, column.name))
      options.leaveOut.push_back(column.name);
  return options;
}

void requireSameColumns(InputDescription described, InputDescription known, const DataSource& d,
                        const Table& table, std::span<const std::int64_t> rows) {
  requireNoneLeftOut(known, d, table);
  std::erase_if(described.columns, [&](const auto& column) { return has(known.omitted, column.name); });
  std::erase_if(known.columns, [&](const auto& column) {
    const auto omitted = std::ranges::find(described.omitted, column.name, &OmittedColumn::name);
    return omitted != described.omitted.end() &&
           (hasFewValues(*omitted) || (column.kind == ColumnKind::Number && isCounter(*omitted)) ||
            hasKnownWord(table, column, rows));
  });
  for (auto& column : described.columns) {
    const auto same = std::ranges::find(known.columns, column.name, &ColumnDescription::name);
    if (same == known.columns.end()) continue;
    const bool alike = same->kind == column.kind && same->text == column.text && same->words == column.words;
    // What is numbers or dates by the rules of today is words to a model that learned it so.
    if (alike || (column.kind != ColumnKind::Words && hasKnownWord(table, *same, rows))) column = *same;
  }
  described.requireSame(known, d.train, "the model");
}

InputDescription withOrder(InputDescription known, const DataSource& d) {
  const auto wanted = d.tableOptions().dateOrder;
  for (auto& column : known.columns) {
    if (!wanted || column.kind != ColumnKind::Date || column.order == DateOrder::YearMonthDay) continue;
    require(column.order == *wanted, "data.dateOrder is {}, and the model reads the dates of column {} as {}",
            d.dateOrder, csvField(column.name), nameOf(column.order));
    column.separators = kDateSeparators;
  }
  return known;
}

}  // namespace muster::detail
