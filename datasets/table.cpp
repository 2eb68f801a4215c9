#include "muster/datasets/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/printable_text.h"
#include "muster/core/base/utf8.h"
#include "muster/datasets/cell_values.h"
#include "muster/datasets/detail/csv_rows.h"
#include "muster/datasets/file_bytes.h"

namespace muster {
namespace {

using detail::CsvRow;

/// Trims the names of a header, and names what has none by its number.
std::vector<std::string> namesIn(CsvRow& header) {
  detail::dropEmptyLast(header.fields);
  std::vector<std::string> names;
  for (const auto& field : header.fields) {
    const auto name = trimmed(field);
    names.push_back(name.empty() ? fmt::format("{}", names.size() + 1) : std::string(name));
  }
  return names;
}

std::vector<std::string> numbered(std::size_t columns) {
  std::vector<std::string> names;
  while (names.size() < columns) names.push_back(fmt::format("{}", names.size() + 1));
  return names;
}

std::string_view textOf(const FileContents& contents) {
  return {reinterpret_cast<const char*>(contents.bytes.data()), contents.bytes.size()};
}

}  // namespace

Table parseTable(std::string_view text, const TableFormat& format, const std::filesystem::path& path) {
  if (text.size() > std::numeric_limits<std::uint32_t>::max())
    throw FileError(path, "has more than 4 GiB, the most that a table may have");
  detail::CsvRows rows(text, format.separator, path);
  Table::Contents contents{.origin = path, .format = format};
  contents.text.reserve(text.size());
  const auto first = detail::firstLineOf(text);
  auto row = rows.next();
  detail::HeaderCheck header;
  if (row && format.header) {
    header = {row->fields, path};
    contents.names = namesIn(*row);
    row = rows.next();
  }
  for (; row; row = rows.next()) {
    if (contents.names.empty()) contents.names = numbered(row->fields.size());
    detail::requireFields(*row, contents.names.size(), path, first, format.separator);
    header.add(*row);
    for (const auto& field : row->fields) {
      const auto cell = trimmed(field);
      if (!isUtf8(cell))
        detail::failAtLine(path, row->line,
                           fmt::format("\"{}\" is not UTF-8; save the file as UTF-8", printableText(cell)));
      contents.cells.push_back(
          {static_cast<std::uint32_t>(contents.text.size()), static_cast<std::uint32_t>(cell.size())});
      contents.text += cell;
    }
    contents.lines.push_back(row->line);
  }
  if (contents.lines.empty()) throw FileError(path, "has no rows of data");
  // One column is enough for a model of one; with another separator in it, the table is read wrongly.
  if (contents.names.size() < 2 && first.find_first_of(",;\t|") != first.npos)
    throw FileError(path, detail::oneColumn(first, format.separator));
  Table table;
  table.contents_ = std::make_shared<const Table::Contents>(std::move(contents));
  return table;
}

Table readTable(const std::filesystem::path& path, const TableFormat& format) {
  const FileContents contents = readContents(path, kMostUnpackedText);
  return parseTable(textOf(contents), format, path);
}

char separatorIn(const std::filesystem::path& path) {
  const FileContents contents = readContents(path, kMostUnpackedText);
  std::map<char, std::int64_t> counts;
  bool quoted = false, begun = false;
  for (const char c : textOf(contents)) {
    if (c == '\n' && begun && !quoted) break;
    begun = begun || (c != '\n' && c != '\r');
    if (c == '"') quoted = !quoted;
    if (!quoted) ++counts[c];
  }
  return std::ranges::max({',', ';', '\t', '|'}, {}, [&](char separator) { return counts[separator]; });
}

std::optional<std::size_t> Table::find(std::string_view name) const {
  const auto found = std::ranges::find(names(), name);
  if (found == names().end()) return std::nullopt;
  if (std::ranges::count(names(), name) > 1)
    throw FileError(origin(), fmt::format("has several columns \"{}\"; give each a name of its own", name));
  return static_cast<std::size_t>(found - names().begin());
}

std::size_t Table::labelColumn(const std::string& label) const {
  return detail::labelColumn(label, names(), origin());
}

}  // namespace muster
