#include "muster/datasets/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/text_table.h"
#include "muster/core/io/json_value.h"
#include "muster/datasets/cell_values.h"
#include "muster/datasets/detail/class_names.h"
#include "muster/datasets/detail/csv_rows.h"
#include "muster/datasets/file_bytes.h"

namespace muster {
namespace {

using detail::CsvRow;
using detail::CsvRows;
using detail::failAtLine;

/// Reads a text twice, row by row: first to count rows and classes, then to read the numbers. So it needs
/// little more memory than the numbers.
class NumberReader {
 public:
  NumberReader(std::string_view text, const CsvOptions& options, const std::filesystem::path& path)
      : text_(text), options_(options), path_(path) {}

  CsvTable read() {
    readWords();
    CsvTable table;
    for (std::size_t c = 0; c < names_.size(); ++c)
      if (c != label_) table.columns.push_back(names_[c]);
    table.features = Tensor::empty({count_, std::ssize(table.columns)});
    table.labels = options_.regression ? Tensor::empty({count_, 1}) : Tensor::empty({count_}, DType::Int64);
    if (!options_.regression)
      table.classes = options_.classes.empty() ? detail::classesOf(words_, count_, names_[label_], path_)
                                               : options_.classes;
    fill(table);
    return table;
  }

 private:
  /// Reads the columns' names and the labels' words, and counts the rows.
  void readWords() {
    CsvRows rows(text_, options_.separator, path_);
    auto row = rows.next();
    detail::HeaderCheck header;
    if (options_.header && row) {
      header = {row->fields, path_};
      detail::dropEmptyLast(row->fields);
      for (const auto& name : row->fields) names_.emplace_back(trimmed(name));
      row = rows.next();
    }
    const bool ownClasses = !options_.regression && options_.classes.empty();
    for (; row; row = rows.next(), ++count_) {
      if (names_.empty())
        for (std::size_t c = 1; c <= row->fields.size(); ++c) names_.push_back(fmt::format("{}", c));
      detail::requireFields(*row, names_.size(), path_, detail::firstLineOf(text_), options_.separator);
      header.add(*row);
      if (count_ == 0) {
        if (names_.size() < 2)
          throw FileError(path_, detail::oneColumn(detail::firstLineOf(text_), options_.separator));
        label_ = detail::labelColumn(options_.label, names_, path_);
      }
      if (!ownClasses) continue;
      const auto word = trimmed(row->fields[label_]);
      if (word.empty())
        failAtLine(path_, row->line, fmt::format("column {} has no label", csvField(names_[label_])));
      if (!words_.contains(word)) words_.emplace(word);
    }
    if (count_ == 0) throw FileError(path_, "has no rows of data");
  }

  void fill(CsvTable& table) const {
    CsvRows rows(text_, options_.separator, path_);
    if (options_.header) rows.next();
    const detail::ClassNumbers classes(table.classes);
    float* to = table.features.data<float>();
    for (std::int64_t r = 0; r < count_; ++r) {
      const CsvRow row = *rows.next();
      for (std::size_t c = 0; c < names_.size(); ++c)
        if (c != label_) *to++ = number(row, c);
      if (options_.regression)
        table.labels.data<float>()[r] = number(row, label_);
      else
        table.labels.data<std::int64_t>()[r] = classOf(row, classes, table.classes);
    }
  }

  float number(const CsvRow& row, std::size_t column) const {
    const auto value = numberIn(row.fields[column]);
    if (!value)
      failAtLine(
          path_, row.line,
          fmt::format("column {} must be {}, and is {}{}", csvField(names_[column]),
                      numberWanted(row.fields[column]), quoteJson(row.fields[column]),
                      hasDecimalComma(row.fields[column]) ? ", with a decimal comma; write a point" : ""));
    return static_cast<float>(*value);
  }

  std::int64_t classOf(const CsvRow& row, const detail::ClassNumbers& classes,
                       const std::vector<std::string>& names) const {
    const auto found = classes.find(row.fields[label_]);
    if (!found)
      failAtLine(
          path_, row.line,
          fmt::format("there is no class {}; there are {}", quoteJson(row.fields[label_]), csvList(names)));
    return *found;
  }

  const std::string_view text_;
  const CsvOptions& options_;
  const std::filesystem::path& path_;
  std::vector<std::string> names_;
  std::size_t label_ = 0;
  std::int64_t count_ = 0;
  std::set<std::string, std::less<>> words_;
};

}  // namespace

CsvTable parseCsv(std::string_view text, const CsvOptions& options, const std::filesystem::path& path) {
  return NumberReader(text, options, path).read();
}

CsvTable readCsv(const std::filesystem::path& path, const CsvOptions& options) {
  const FileContents contents = readContents(path, kMostUnpackedText);
  return parseCsv({reinterpret_cast<const char*>(contents.bytes.data()), contents.bytes.size()}, options,
                  path);
}

}  // namespace muster
