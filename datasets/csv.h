#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/tensor/tensor.h"

namespace muster {

/// Options of `readCsv`.
struct CsvOptions {
  bool header = true;      ///< the first row has the columns' names
  std::string label = {};  ///< the label column's name, or its number from 1; empty: the last column
  char separator = ',';
  /// Labels are numbers to predict, not classes.
  bool regression = false;
  /// The classes' words in order, as another file of the same data had them; empty: those of this file,
  /// sorted, as numbers if all of them are.
  std::vector<std::string> classes = {};
};

/// A CSV file as a data set.
struct CsvTable {
  Tensor features;                   ///< float32 [N, F], the other columns in order
  Tensor labels;                     ///< int64 [N] classes, or float32 [N, 1]
  std::vector<std::string> columns;  ///< the features' names, or their numbers from 1
  std::vector<std::string> classes;  ///< [class]; empty for a regression
};

/// Reads rows of numbers with a label column, plain or gzip: RFC 4180, that is fields in quotes may contain
/// separators, line ends and doubled quotes; lines end with LF or CRLF. Lines that are empty or blank, a byte
/// order mark, and a separator at a line's end are skipped. Names and labels are trimmed; labels that are
/// numbers are compared as numbers, so that "1" and "1.0" are one class. `readTable` reads tables with words,
/// dates and gaps.
/// @throws FileError naming the line of a row with another number of fields than the first, a field that is
///         not a finite number, a quote that is not closed or is followed by text, a class that is blank or
///         not among `options.classes`; FileError for a label column that is missing or given twice, or that
///         has too many different numbers or words to be classes, a first line that has numbers instead of
///         names, a file without rows, one that is no CSV (UTF-16, Excel, zip), and a gzip file that unpacks
///         to more than 256 MiB.
CsvTable readCsv(const std::filesystem::path& path, const CsvOptions& options = {});

/// As above, from text. @param path  for messages.
CsvTable parseCsv(std::string_view text, const CsvOptions& options, const std::filesystem::path& path);

}  // namespace muster
