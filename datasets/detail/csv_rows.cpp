#include "muster/datasets/detail/csv_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "muster/core/base/error.h"
#include "muster/core/base/nearest_word.h"
#include "muster/core/base/plural.h"
#include "muster/core/base/text_table.h"
#include "muster/datasets/cell_values.h"

namespace muster::detail {
namespace {

constexpr std::size_t kMostColumns = std::size_t{1} << 20;
constexpr std::size_t kMostNamesShown = 20;  // names of columns

constexpr std::string_view kSeparators = ",;\t|";

/// A separator in a message.
std::string shown(char separator) {
  return separator == '\t' ? "a tab" : fmt::format("\"{}\"", separator);
}

bool isBlank(char c) {
  return c == ' ' || c == '\t';
}

/// @throws FileError for files that are often given for CSV.
void requireCsv(std::string_view text, const std::filesystem::path& path) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    throw FileError(path, "is UTF-16 text; save it as UTF-8");
  if (text.starts_with("PK\x03\x04"))
    throw FileError(path,
                    "is a zip archive or an Excel workbook (xlsx), not CSV; unpack it, or save the "
                    "sheet as CSV");
  if (text.starts_with("\xD0\xCF\x11\xE0"))
    throw FileError(path, "is an Excel workbook (xls), not CSV; save the sheet as CSV");
  if (text.starts_with("PAR1")) throw FileError(path, "is a Parquet file, not CSV");
  if (const auto nul = text.find('\0'); nul != text.npos)
    failAtLine(path, 1 + std::ranges::count(text.substr(0, nul), '\n'),
               "a NUL byte, which no text has; the file is damaged, or UTF-16 to be saved as UTF-8");
}

[[noreturn]] void failNoNames(const std::filesystem::path& path) {
  throw FileError(path,
                  "its first line has numbers where the names of the columns should be; if it has no "
                  "names, set header to false (data.header=false)");
}

}  // namespace

void failAtLine(const std::filesystem::path& path, std::int64_t line, const std::string& why) {
  throw FileError(path, fmt::format("line {}: {}", line, why));
}

CsvRows::CsvRows(std::string_view text, char separator, const std::filesystem::path& path)
    : text_(text), separator_(separator), path_(path) {
  require(separator != '"' && separator != '\n' && separator != '\r',
          "csv: the separator cannot be a quote or a line end");
  requireCsv(text, path);
  if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
}

std::optional<CsvRow> CsvRows::next() {
  skipBlankLines();
  if (at_ == text_.size()) return std::nullopt;
  CsvRow row{.line = line_, .fields = {}};
  for (bool more = true; more;) {
    if (row.fields.size() == kMostColumns)
      failAtLine(path_, line_, fmt::format("more than {} columns", kMostColumns));
    row.fields.push_back(at_ < text_.size() && text_[at_] == '"' ? quoted() : plain());
    more = at_ < text_.size() && text_[at_] == separator_;
    if (more) ++at_;
  }
  if (at_ < text_.size()) endLine();
  return row;
}

/// A table has at least two columns, so blank lines are not rows.
void CsvRows::skipBlankLines() {
  for (std::size_t end = at_; true; end = at_) {
    while (end < text_.size() && text_[end] != separator_ && isBlank(text_[end])) ++end;
    if (end < text_.size() && text_[end] != '\n' && text_[end] != '\r') return;
    at_ = end;
    if (at_ == text_.size()) return;
    endLine();
  }
}

void CsvRows::endLine() {
  if (text_[at_] == '\r') ++at_;
  if (at_ == text_.size() || text_[at_] != '\n')
    failAtLine(path_, line_, "a carriage return without a line feed");
  ++at_;
  ++line_;
}

std::string CsvRows::plain() {
  const std::size_t begin = at_;
  while (at_ < text_.size() && text_[at_] != separator_ && !atLineEnd()) ++at_;
  return std::string(text_.substr(begin, at_ - begin));
}

std::string CsvRows::quoted() {
  const std::int64_t opened = line_;
  std::string field;
  for (++at_;; ++at_) {
    if (at_ == text_.size()) failAtLine(path_, opened, "a quote is opened here and never closed");
    if (text_[at_] == '\n') ++line_;
    if (text_[at_] == '"' && (++at_ == text_.size() || text_[at_] != '"')) break;
    field += text_[at_];
  }
  if (at_ < text_.size() && text_[at_] != separator_ && !atLineEnd()) {
    const bool other = kSeparators.find(text_[at_]) != kSeparators.npos;
    failAtLine(
        path_, line_,
        fmt::format("text follows a closing quote{}",
                    other ? fmt::format("; columns are separated by {}, and this file seems to have {} "
                                        "between them",
                                        shown(separator_), shown(text_[at_]))
                          : ""));
  }
  return field;
}

HeaderCheck::HeaderCheck(const std::vector<std::string>& names, const std::filesystem::path& path)
    : path_(path) {
  std::vector<double> numbers;
  for (const auto& name : names)
    if (const auto value = numberIn(name)) numbers.push_back(*value);
  const bool allNumbers = numbers.size() == names.size();
  std::ranges::sort(numbers);
  const bool codes = std::ranges::all_of(numbers, [](double x) { return x >= 0 && x == std::floor(x); }) &&
                     std::ranges::adjacent_find(numbers) == numbers.end();
  const bool years = codes && (numbers.empty() || (numbers.front() >= 1500 && numbers.back() <= 2200));
  if (!years && (!codes || allNumbers)) failNoNames(path);
  if (numbers.empty()) return;
  for (std::size_t c = 0; c < names.size(); ++c)
    if (const auto name = trimmed(names[c]); !isMissingNumber(name) && !numberIn(name))
      words_.push_back({c, std::string(name)});
}

void HeaderCheck::add(const CsvRow& row) const {
  for (const auto& [column, name] : words_)
    if (column < row.fields.size() && trimmed(row.fields[column]) == name) failNoNames(path_);
}

void dropEmptyLast(std::vector<std::string>& fields) {
  if (fields.size() > 1 && trimmed(fields.back()).empty()) fields.pop_back();
}

std::string noColumn(std::string_view name, const std::vector<std::string>& names) {
  const auto nearest = nearestWord(name, names);
  return fmt::format("has no column \"{}\"; {}", name,
                     nearest ? fmt::format("the nearest of its {} is {}", names.size(), csvField(*nearest))
                     : names.size() > kMostNamesShown
                         ? fmt::format("it has {}", plural(names.size(), "column"))
                         : fmt::format("it has {}", csvList(names)));
}

std::size_t labelColumn(std::string_view label, const std::vector<std::string>& names,
                        const std::filesystem::path& path) {
  label = trimmed(label);
  if (label.empty()) return names.size() - 1;
  if (const auto found = std::ranges::find(names, label); found != names.end()) {
    if (std::ranges::count(names, label) > 1)
      throw FileError(path,
                      fmt::format("has several columns \"{}\"; the label's number says which one", label));
    return static_cast<std::size_t>(found - names.begin());
  }
  std::size_t number = 0;
  const char* const end = label.data() + label.size();
  const auto [rest, error] = std::from_chars(label.data(), end, number);
  if (error == std::errc() && rest == end && number >= 1 && number <= names.size()) return number - 1;
  throw FileError(path, noColumn(label, names));
}

void requireFields(CsvRow& row, std::size_t columns, const std::filesystem::path& path,
                   std::string_view firstLine, char separator) {
  if (row.fields.size() == columns + 1) dropEmptyLast(row.fields);
  if (row.fields.size() == columns) return;
  if (columns == 1 && firstLine.find_first_of(kSeparators) != firstLine.npos)
    throw FileError(path, oneColumn(firstLine, separator));
  failAtLine(path, row.line,
             fmt::format("{}, where the first line has {}", plural(row.fields.size(), "field"), columns));
}

std::string oneColumn(std::string_view firstLine, char separator) {
  auto text = fmt::format("has one column; features and a label are separated by {}", shown(separator));
  for (const char other : kSeparators)
    if (other != separator && firstLine.find(other) != firstLine.npos)
      return text + fmt::format(", and this file seems to have {} between its columns", shown(other));
  return text;
}

}  // namespace muster::detail
