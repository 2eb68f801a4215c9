#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/base/fields.h"

namespace muster {

class DataSetIterator;

/// What a column of a table holds.
enum class ColumnKind { Number, Words, Date };

template <>
struct EnumNames<ColumnKind> {
  static constexpr std::array<std::pair<ColumnKind, std::string_view>, 3> kNames{
      {{ColumnKind::Number, "number"}, {ColumnKind::Words, "words"}, {ColumnKind::Date, "date"}}};
};

/// In which order a date names its parts.
enum class DateOrder { YearMonthDay, DayMonthYear, MonthDayYear };

template <>
struct EnumNames<DateOrder> {
  static constexpr std::array<std::pair<DateOrder, std::string_view>, 3> kNames{
      {{DateOrder::YearMonthDay, "yearMonthDay"},
       {DateOrder::DayMonthYear, "dayMonthYear"},
       {DateOrder::MonthDayYear, "monthDayYear"}}};
};

/// How a column's numbers are written.
struct NumberText {
  std::string before = {}, after = {};  ///< a unit, as "$" or "%", which each number may have
  bool thousands = false;               ///< commas separate thousands, as in "92,000"
  bool operator==(const NumberText&) const = default;
};

/// How a column of a table becomes features.
///
/// A number is one feature. Words are one feature each, 1 where the row has this word and else 0. A date is
/// its days since 2000-01-01 with a fraction for the time of day, then the parts that are set.
struct ColumnDescription {
  std::string name = {};
  ColumnKind kind = ColumnKind::Number;
  /// For a number or a date, the value in place of a missing one: the median of the training rows.
  double filling = 0;
  /// A last feature is 1 where the value is missing and else 0: values were missing in training rows.
  bool missing = false;
  /// Number columns only. Training rows had words that are no numbers; they count as missing, as in new rows.
  bool wordsAreMissing = false;
  NumberText text = {};  ///< of a number
  /// The scale of a number's second feature, sign(x) log(1 + |x| / scale), for many magnitudes; 0: none.
  double logScale = 0;
  /// Quantiles of a number in the training rows, from the smallest value to the largest. A feature is the
  /// value's place among them, from 0 to 1, linear between two of them; empty: none.
  std::vector<double> quantiles = {};
  std::vector<std::string> words = {};  ///< with a feature each, in order
  bool others = false;                  ///< a feature after those of the words is 1 for any other word
  DateOrder order = DateOrder::YearMonthDay;
  /// Between the parts of dates whose year is last, in the training rows, as "/" or "-.": of others the order
  /// is not known. All three if the order was given; "" if it is not known which ones there were.
  std::string separators = {};
  bool year = false, week = false, day = false;  ///< time of the year and of the day as cosine and sine, and
                                                 ///< the day of the week as seven features from Monday

  std::int64_t features() const;
  /// The features' names, as in "colour=red".
  std::vector<std::string> featureNames() const;
  bool operator==(const ColumnDescription&) const = default;
};

/// A column that is not read.
struct OmittedColumn {
  std::string name = {}, reason = {};
  bool operator==(const OmittedColumn&) const = default;
};

/// A number to predict, which the network sees as (value - mean) / scale.
struct TargetColumn {
  std::string name = {};
  double mean = 0, scale = 1;
  NumberText text = {};
  bool operator==(const TargetColumn&) const = default;
};

/// How a table's file separates its cells.
struct TableFormat {
  bool header = true;  ///< the first row has the columns' names; else they are numbers from 1
  char separator = ',';
  bool operator==(const TableFormat&) const = default;
};

/// To which size and channels pictures are brought.
struct PictureDescription {
  std::int64_t channels = 3, height = 0, width = 0;
  bool operator==(const PictureDescription&) const = default;
};

/// What a network knows of its data besides its layers: how rows of a table, or pictures, become its inputs,
/// and what its outputs mean. Fitted on training examples; `Network::setInputDescription` makes it a part of
/// the model and of its files. Scaling of features is not here: it is the layer Normalise.
struct InputDescription {
  // of a table
  TableFormat format = {};
  /// The columns of the training's table if it had no names of them, so that they are known by their places;
  /// 0: it had names, or it is not known.
  std::int64_t unnamedColumns = 0;
  std::vector<ColumnDescription> columns = {};  ///< in the order of the features
  std::vector<OmittedColumn> omitted = {};
  // of pictures
  std::optional<PictureDescription> pictures = {};
  // of the outputs
  std::string label = {};                  ///< the column of the classes; "" without one
  std::vector<std::string> classes = {};   ///< [class] names; empty for a regression
  std::vector<TargetColumn> targets = {};  ///< [output] of a regression

  bool empty() const { return *this == InputDescription{}; }
  /// The number of features of a table's row.
  std::int64_t features() const;
  /// [feature] names.
  std::vector<std::string> featureNames() const;
  /// Refuses data that mean something else. Fillings, scales and what is omitted may differ.
  /// @param here, there  name the two in messages, as in "rows.csv" and "the model".
  /// @throws InvalidArgument naming the class, column, kind, words or size that differs.
  void requireSame(const InputDescription& other, std::string_view here, std::string_view there) const;
  /// As above, and fillings and scales must be the same, too: for data that are tensors already.
  void requireSameTensors(const InputDescription& other, std::string_view here, std::string_view there) const;

  /// As in model files. Source: core/io.
  std::string toJson() const;
  /// The reverse. @throws InvalidArgument naming the field that is unknown or wrong.
  static InputDescription fromJson(std::string_view json);
  bool operator==(const InputDescription&) const = default;
};

/// Refuses data whose description (`DataSetIterator::description`) differs from the model's: their tensors
/// would mean something else to it. Accepts all data if one of the two descriptions is not known.
/// @param model  such as `Model::inputDescription()`.
/// @param what   begins the message, as in "evaluate".
/// @throws InvalidArgument naming the class, column, words, filling or scale that differs.
void requireSameInput(const DataSetIterator& data, const InputDescription& model, std::string_view what);

}  // namespace muster
