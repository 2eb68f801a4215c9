#include "muster/datasets/csv.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/nearest_word.h"
#include "muster/datasets/file_bytes.h"

namespace muster {
namespace {

struct Row {
  std::int64_t line = 0;  // of its beginning, from 1
  std::vector<std::string> fields;
};

/// Rows of a text, one after the other.
class RowReader {
 public:
  RowReader(std::string_view text, char separator, const std::filesystem::path& path)
      : text_(text), separator_(separator), path_(path) {}

  std::optional<Row> next() {
    if (at_ == text_.size()) return std::nullopt;
    Row row{.line = line_, .fields = {}};
    for (bool more = true; more;) {
      row.fields.push_back(at_ < text_.size() && text_[at_] == '"' ? quoted() : plain());
      more = at_ < text_.size() && text_[at_] == separator_;
      if (more) ++at_;
    }
    if (at_ < text_.size()) endLine();
    return row;
  }

  [[noreturn]] void fail(std::int64_t line, const std::string& why) const {
    throw FileError(path_, fmt::format("line {}: {}", line, why));
  }

 private:
  bool atLineEnd() const { return text_[at_] == '\n' || text_[at_] == '\r'; }

  void endLine() {
    if (text_[at_] == '\r') ++at_;
    if (at_ == text_.size() || text_[at_] != '\n') fail(line_, "a carriage return without a line feed");
    ++at_;
    ++line_;
  }

  std::string plain() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != separator_ && !atLineEnd()) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string quoted() {
    const std::int64_t opened = line_;
    std::string field;
    for (++at_;; ++at_) {
      if (at_ == text_.size()) fail(opened, "a quote is opened here and never closed");
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] == '"' && (++at_ == text_.size() || text_[at_] != '"')) break;
      field += text_[at_];
    }
    if (at_ < text_.size() && text_[at_] != separator_ && !atLineEnd())
      fail(line_, "text follows a closing quote");
    return field;
  }

  std::string_view text_;
  char separator_;
  const std::filesystem::path& path_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
};

std::optional<double> numberIn(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
  return whole && std::isfinite(value) && std::isfinite(static_cast<float>(value)) ? std::optional(value)
                                                                                   : std::nullopt;
}

/// In the order of their numbers if all are numbers, else of their letters.
std::vector<std::string> sortedClasses(std::vector<std::string> words) {
  std::ranges::sort(words);
  const auto repeated = std::ranges::unique(words);
  words.erase(repeated.begin(), repeated.end());
  if (std::ranges::all_of(words, [](const auto& word) { return numberIn(word).has_value(); }))
    std::ranges::stable_sort(words, {}, [](const auto& word) { return *numberIn(word); });
  return words;
}

std::size_t labelColumn(const CsvOptions& options, const std::vector<std::string>& names,
                        const std::filesystem::path& path) {
  if (options.label.empty()) return names.size() - 1;
  if (const auto found = std::ranges::find(names, options.label); found != names.end())
    return static_cast<std::size_t>(found - names.begin());
  std::size_t number = 0;
  const char* const end = options.label.data() + options.label.size();
  const auto [rest, error] = std::from_chars(options.label.data(), end, number);
  if (error == std::errc() && rest == end && number >= 1 && number <= names.size()) return number - 1;
  throw FileError(path, fmt::format("has no column \"{}\" for the labels; the nearest of its {} is {}",
                                    options.label, names.size(), nearestWord(options.label, names)));
}

/// The rows as numbers.
class TableBuilder {
 public:
  TableBuilder(const CsvOptions& options, std::vector<Row> rows, std::vector<std::string> names,
               std::size_t label, const RowReader& reader)
      : options_(options), rows_(std::move(rows)), names_(std::move(names)), label_(label), reader_(reader) {}

  CsvTable build() const {
    const auto rows = static_cast<std::int64_t>(rows_.size());
    CsvTable table;
    for (std::size_t c = 0; c < names_.size(); ++c)
      if (c != label_) table.columns.push_back(names_[c]);
    table.features = Tensor::empty({rows, static_cast<std::int64_t>(table.columns.size())});
    float* to = table.features.data<float>();
    for (const auto& row : rows_)
      for (std::size_t c = 0; c < names_.size(); ++c)
        if (c != label_) *to++ = number(row, c);
    if (options_.regression) {
      table.labels = Tensor::empty({rows, 1});
      for (std::int64_t r = 0; r < rows; ++r)
        table.labels.data<float>()[r] = number(rows_[static_cast<std::size_t>(r)], label_);
      return table;
    }
    table.classes = options_.classes;
    if (table.classes.empty()) {
      std::vector<std::string> words;
      for (const auto& row : rows_) words.push_back(row.fields[label_]);
      table.classes = sortedClasses(std::move(words));
    }
    table.labels = Tensor::empty({rows}, DType::Int64);
    for (std::int64_t r = 0; r < rows; ++r)
      table.labels.data<std::int64_t>()[r] = classOf(rows_[static_cast<std::size_t>(r)], table.classes);
    return table;
  }

 private:
  float number(const Row& row, std::size_t column) const {
    const auto value = numberIn(row.fields[column]);
    if (!value)
      reader_.fail(row.line, fmt::format("column {} must be a finite number, and is \"{}\"", names_[column],
                                         row.fields[column]));
    return static_cast<float>(*value);
  }

  std::int64_t classOf(const Row& row, const std::vector<std::string>& classes) const {
    const auto& word = row.fields[label_];
    const auto found = std::ranges::find(classes, word);
    if (found == classes.end())
      reader_.fail(row.line,
                   fmt::format("there is no class \"{}\"; there are {}", word, fmt::join(classes, ", ")));
    return found - classes.begin();
  }

  const CsvOptions& options_;
  const std::vector<Row> rows_;
  const std::vector<std::string> names_;
  const std::size_t label_;
  const RowReader& reader_;
};

}  // namespace

CsvTable parseCsv(std::string_view text, const CsvOptions& options, const std::filesystem::path& path) {
  require(options.separator != '"' && options.separator != '\n' && options.separator != '\r',
          "csv: the separator cannot be a quote or a line end");
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  RowReader reader(text, options.separator, path);
  std::vector<std::string> names;
  if (options.header)
    if (auto first = reader.next()) names = std::move(first->fields);
  std::vector<Row> rows;
  while (auto row = reader.next()) {
    if (names.empty())
      for (std::size_t c = 1; c <= row->fields.size(); ++c) names.push_back(fmt::format("{}", c));
    if (row->fields.size() != names.size())
      reader.fail(row->line, fmt::format("{} field{}, where the first line has {}", row->fields.size(),
                                         row->fields.size() == 1 ? "" : "s", names.size()));
    rows.push_back(std::move(*row));
  }
  if (rows.empty()) throw FileError(path, "has no rows of data");
  if (names.size() < 2)
    throw FileError(
        path, fmt::format("has one column; features and a label are separated by \"{}\"", options.separator));
  const std::size_t label = labelColumn(options, names, path);
  return TableBuilder(options, std::move(rows), std::move(names), label, reader).build();
}

CsvTable readCsv(const std::filesystem::path& path, const CsvOptions& options) {
  const FileContents contents = readContents(path);
  return parseCsv({reinterpret_cast<const char*>(contents.bytes.data()), contents.bytes.size()}, options,
                  path);
}

}  // namespace muster
