#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::detail {

/// The classes of a label column, sorted, as numbers if all of them are. Numbers are compared as numbers: of
/// "1" and "1.0" the shorter one is the class.
/// @param words  the column's different cells, trimmed. @param rows  of the table.
/// @throws FileError if the column holds a number to predict, or a text of its own for nearly every row.
std::vector<std::string> classesOf(const std::set<std::string, std::less<>>& words, std::int64_t rows,
                                   std::string_view label, const std::filesystem::path& path);

/// Finds the class of a cell.
class ClassNumbers {
 public:
  explicit ClassNumbers(std::span<const std::string> classes);
  /// By the text or, for a number, by its value.
  std::optional<std::int64_t> find(std::string_view cell) const;

 private:
  std::map<std::string, std::int64_t, std::less<>> byText_;
  std::map<double, std::int64_t> byValue_;
};

}  // namespace muster::detail
