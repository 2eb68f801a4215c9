#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::detail {

struct CsvRow {
  std::int64_t line = 0;  // on which it begins, from 1
  std::vector<std::string> fields;
};

/// Reads the rows of a CSV text in order: RFC 4180, lines end with LF or CRLF, blank lines are skipped.
class CsvRows {
 public:
  /// @param text  may begin with a byte order mark of UTF-8. @param path  for messages, must outlive it.
  /// @throws FileError if the text is UTF-16, or a zip archive or an Excel workbook, or naming the line of a
  ///         NUL byte; InvalidArgument for a separator that cannot be one.
  CsvRows(std::string_view text, char separator, const std::filesystem::path& path);

  /// @throws FileError naming the line of a broken quote or line end, or with more than 2^20 columns.
  std::optional<CsvRow> next();

 private:
  void skipBlankLines();
  bool atLineEnd() const { return text_[at_] == '\n' || text_[at_] == '\r'; }
  void endLine();
  std::string plain();
  std::string quoted();

  std::string_view text_;
  char separator_;
  const std::filesystem::path& path_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
};

/// @throws FileError "line 3: why".
[[noreturn]] void failAtLine(const std::filesystem::path& path, std::int64_t line, const std::string& why);

/// Finds a first row that has no names: a table without a header would lose it.
class HeaderCheck {
 public:
  /// For a table without a header.
  HeaderCheck() = default;
  /// @throws FileError if `names` has numbers where names should be.
  HeaderCheck(const std::vector<std::string>& names, const std::filesystem::path& path);
  /// In a header that has numbers, too, a word that occurs again in its column is a value.
  /// @throws FileError if a word of the header occurs again in `row`.
  void add(const CsvRow& row) const;

 private:
  struct Word {
    std::size_t column;
    std::string name;
  };

  std::vector<Word> words_ = {};  // in a header with numbers
  std::filesystem::path path_;
};

/// Removes the empty last field that a separator at a line's end makes, if the row is by one too long.
/// @param firstLine  of the table. One column is often the wrong separator.
/// @throws FileError if the row then has another number of fields than `columns`.
void requireFields(CsvRow& row, std::size_t columns, const std::filesystem::path& path,
                   std::string_view firstLine = {}, char separator = ',');

/// The first line of a text.
inline std::string_view firstLineOf(std::string_view text) {
  return text.substr(0, text.find('\n'));
}

/// Removes the empty last field that a separator at a line's end makes.
void dropEmptyLast(std::vector<std::string>& fields);

/// The label's column by its name, or by its number from 1; "": the last one.
/// @throws FileError if there is none or there are several.
std::size_t labelColumn(std::string_view label, const std::vector<std::string>& names,
                        const std::filesystem::path& path);

/// What is wrong with a name that no column has, with the nearest name.
std::string noColumn(std::string_view name, const std::vector<std::string>& names);

/// For a table with one column: names the separator that its first line seems to have.
std::string oneColumn(std::string_view firstLine, char separator);

}  // namespace muster::detail
