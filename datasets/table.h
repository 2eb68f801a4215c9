#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/data/input_description.h"

namespace muster {

/// The cells of a table as texts, before anything is known of its columns. Immutable; copies share the cells.
class Table {
 public:
  const std::filesystem::path& origin() const { return contents_->origin; }
  const TableFormat& format() const { return contents_->format; }
  /// Trimmed; a column without a name is called by its number from 1.
  const std::vector<std::string>& names() const { return contents_->names; }
  std::int64_t rows() const { return static_cast<std::int64_t>(contents_->lines.size()); }
  /// Without spaces at the ends. Not checked: 0 <= row < rows(), column < names().size().
  std::string_view cell(std::int64_t row, std::size_t column) const {
    const auto& place = contents_->cells[static_cast<std::size_t>(row) * contents_->names.size() + column];
    return std::string_view(contents_->text).substr(place.at, place.length);
  }
  /// The line of the file on which a row begins, from 1.
  std::int64_t line(std::int64_t row) const { return contents_->lines[static_cast<std::size_t>(row)]; }
  /// The column of this name, or nothing. @throws FileError if there are several.
  std::optional<std::size_t> find(std::string_view name) const;
  /// The label's column by its name, or by its number from 1; "": the last one.
  /// @throws FileError if there is none or there are several.
  std::size_t labelColumn(const std::string& label) const;

 private:
  friend Table parseTable(std::string_view text, const TableFormat& format,
                          const std::filesystem::path& path);
  struct Cell {
    std::uint32_t at = 0, length = 0;
  };
  struct Contents {
    std::filesystem::path origin = {};
    TableFormat format = {};
    std::vector<std::string> names = {};
    std::string text = {};                 // of all cells
    std::vector<Cell> cells = {};          // [row * columns + column]
    std::vector<std::int64_t> lines = {};  // [row]
  };
  Table() = default;

  std::shared_ptr<const Contents> contents_;
};

/// Reads a table with names, words and numbers, plain or gzip, in the syntax of `readCsv`. Cells are trimmed.
/// A separator at each line's end makes no column.
/// @throws FileError naming the line of a row with another number of fields than the first or a broken quote;
///         FileError for a table that is not UTF-8, has no rows or one column, whose first line has numbers
///         instead of names, that has more than 256 MiB, or is no CSV (UTF-16, Excel, zip).
Table readTable(const std::filesystem::path& path, const TableFormat& format = {});

/// As above, from text. @param path  for messages.
Table parseTable(std::string_view text, const TableFormat& format, const std::filesystem::path& path);

/// The separator of a table's first line: of ',', ';', tab and '|' the one that occurs most often outside of
/// quotes; ',' if none does. @throws FileError if the file cannot be read.
char separatorIn(const std::filesystem::path& path);

}  // namespace muster
