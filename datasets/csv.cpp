#include "muster/datasets/csv.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/nearest_word.h"
#include "muster/core/io/json_value.h"
#include "muster/datasets/file_bytes.h"

namespace muster {
namespace {

constexpr std::size_t kMostColumns = std::size_t{1} << 20;

struct Row {
  std::int64_t line = 0;  // on which it begins, from 1
  std::vector<std::string> fields;
};

[[noreturn]] void fail(const std::filesystem::path& path, std::int64_t line, const std::string& why) {
  throw FileError(path, fmt::format("line {}: {}", line, why));
}

bool isBlank(char c) {
  return c == ' ' || c == '\t';
}

/// Reads the rows of a text in order.
class RowReader {
 public:
  RowReader(std::string_view text, char separator, const std::filesystem::path& path)
      : text_(text), separator_(separator), path_(path) {}

  std::optional<Row> next() {
    skipBlankLines();
    if (at_ == text_.size()) return std::nullopt;
    Row row{.line = line_, .fields = {}};
    for (bool more = true; more;) {
      if (row.fields.size() == kMostColumns)
        fail(path_, line_, fmt::format("more than {} columns", kMostColumns));
      row.fields.push_back(at_ < text_.size() && text_[at_] == '"' ? quoted() : plain());
      more = at_ < text_.size() && text_[at_] == separator_;
      if (more) ++at_;
    }
    if (at_ < text_.size()) endLine();
    return row;
  }

 private:
  /// A table has at least two columns, so blank lines are not rows.
  void skipBlankLines() {
    for (std::size_t end = at_; true; end = at_) {
      while (end < text_.size() && text_[end] != separator_ && isBlank(text_[end])) ++end;
      if (end < text_.size() && text_[end] != '\n' && text_[end] != '\r') return;
      at_ = end;
      if (at_ == text_.size()) return;
      endLine();
    }
  }

  bool atLineEnd() const { return text_[at_] == '\n' || text_[at_] == '\r'; }

  void endLine() {
    if (text_[at_] == '\r') ++at_;
    if (at_ == text_.size() || text_[at_] != '\n')
      fail(path_, line_, "a carriage return without a line feed");
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
      if (at_ == text_.size()) fail(path_, opened, "a quote is opened here and never closed");
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] == '"' && (++at_ == text_.size() || text_[at_] != '"')) break;
      field += text_[at_];
    }
    if (at_ < text_.size() && text_[at_] != separator_ && !atLineEnd())
      fail(path_, line_, "text follows a closing quote");
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

/// The classes without repetitions, sorted as numbers if all are numbers, else as text.
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
  if (const auto found = std::ranges::find(names, options.label); found != names.end()) {
    if (std::ranges::count(names, options.label) > 1)
      throw FileError(
          path, fmt::format("has several columns \"{}\"; the label's number says which one", options.label));
    return static_cast<std::size_t>(found - names.begin());
  }
  std::size_t number = 0;
  const char* const end = options.label.data() + options.label.size();
  const auto [rest, error] = std::from_chars(options.label.data(), end, number);
  if (error == std::errc() && rest == end && number >= 1 && number <= names.size()) return number - 1;
  throw FileError(path, fmt::format("has no column \"{}\" for the labels; the nearest of its {} is {}",
                                    options.label, names.size(), nearestWord(options.label, names)));
}

/// Reads a text twice, row by row: first to count rows and classes, then to read the numbers. So it needs
/// little more memory than the numbers.
class TableReader {
 public:
  TableReader(std::string_view text, const CsvOptions& options, const std::filesystem::path& path)
      : text_(text), options_(options), path_(path) {}

  CsvTable read() {
    look();
    CsvTable table;
    for (std::size_t c = 0; c < names_.size(); ++c)
      if (c != label_) table.columns.push_back(names_[c]);
    table.features = Tensor::empty({count_, std::ssize(table.columns)});
    table.labels = options_.regression ? Tensor::empty({count_, 1}) : Tensor::empty({count_}, DType::Int64);
    if (!options_.regression) table.classes = options_.classes;
    if (table.classes.empty()) table.classes = sortedClasses({words_.begin(), words_.end()});
    for (std::size_t n = 0; n < table.classes.size(); ++n)
      numbers_.emplace(table.classes[n], static_cast<std::int64_t>(n));
    fill(table);
    return table;
  }

 private:
  /// Reads the columns' names and the labels' words, and counts the rows.
  void look() {
    RowReader rows(text_, options_.separator, path_);
    if (options_.header)
      if (auto first = rows.next()) names_ = std::move(first->fields);
    const bool ownClasses = !options_.regression && options_.classes.empty();
    for (; const auto row = rows.next(); ++count_) {
      if (names_.empty())
        for (std::size_t c = 1; c <= row->fields.size(); ++c) names_.push_back(fmt::format("{}", c));
      if (row->fields.size() != names_.size())
        fail(path_, row->line,
             fmt::format("{} field{}, where the first line has {}", row->fields.size(),
                         row->fields.size() == 1 ? "" : "s", names_.size()));
      if (count_ == 0) {
        if (names_.size() < 2)
          throw FileError(path_, fmt::format("has one column; features and a label are separated by \"{}\"",
                                             options_.separator));
        label_ = labelColumn(options_, names_, path_);
      }
      if (!ownClasses) continue;
      const auto& word = row->fields[label_];
      if (std::ranges::all_of(word, isBlank))
        fail(path_, row->line, fmt::format("column {} has no label", names_[label_]));
      if (!words_.contains(word)) words_.insert(word);
    }
    if (count_ == 0) throw FileError(path_, "has no rows of data");
  }

  void fill(CsvTable& table) const {
    RowReader rows(text_, options_.separator, path_);
    if (options_.header) rows.next();
    float* to = table.features.data<float>();
    for (std::int64_t r = 0; r < count_; ++r) {
      const Row row = *rows.next();
      for (std::size_t c = 0; c < names_.size(); ++c)
        if (c != label_) *to++ = number(row, c);
      if (options_.regression)
        table.labels.data<float>()[r] = number(row, label_);
      else
        table.labels.data<std::int64_t>()[r] = classOf(row, table.classes);
    }
  }

  float number(const Row& row, std::size_t column) const {
    const auto value = numberIn(row.fields[column]);
    if (!value)
      fail(path_, row.line,
           fmt::format("column {} must be a finite number, and is {}", names_[column],
                       quoteJson(row.fields[column])));
    return static_cast<float>(*value);
  }

  std::int64_t classOf(const Row& row, const std::vector<std::string>& classes) const {
    const auto found = numbers_.find(row.fields[label_]);
    if (found == numbers_.end())
      fail(path_, row.line,
           fmt::format("there is no class {}; there are {}", quoteJson(row.fields[label_]),
                       fmt::join(classes, ", ")));
    return found->second;
  }

  const std::string_view text_;
  const CsvOptions& options_;
  const std::filesystem::path& path_;
  std::vector<std::string> names_;
  std::size_t label_ = 0;
  std::int64_t count_ = 0;
  std::set<std::string> words_;
  std::map<std::string, std::int64_t> numbers_;  // [class name] its number
};

}  // namespace

CsvTable parseCsv(std::string_view text, const CsvOptions& options, const std::filesystem::path& path) {
  require(options.separator != '"' && options.separator != '\n' && options.separator != '\r',
          "csv: the separator cannot be a quote or a line end");
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return TableReader(text, options, path).read();
}

CsvTable readCsv(const std::filesystem::path& path, const CsvOptions& options) {
  const FileContents contents = readContents(path, kMostUnpackedText);
  return parseCsv({reinterpret_cast<const char*>(contents.bytes.data()), contents.bytes.size()}, options,
                  path);
}

}  // namespace muster
