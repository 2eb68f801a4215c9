#pragma once

#include <filesystem>
#include <memory>

#include "muster/core/eval/any_evaluation.h"
#include "muster/core/nn/network.h"
#include "muster/datasets/predictions.h"
#include "muster/datasets/table.h"

namespace muster {

/// A trained network with its `InputDescription`: predicts rows of tables.
///
/// ```cpp
/// auto model = TableModel::load("model.safetensors");
/// const auto predicted = model.predict(readTable("new.csv"));
/// fmt::print("{}\n", predicted.classOf(0));                               // of a regression: valueOf(0)
/// fmt::print("{}\n", model.evaluate(readTable("labelled.csv")).summary());
/// ```
///
/// Use it from one thread at a time.
class TableModel {
 public:
  /// @throws InvalidArgument if the network has no description of a table's columns, or another number of
  ///         inputs or outputs than its description, or both classes and numbers to predict.
  explicit TableModel(std::unique_ptr<Network> network);
  /// @throws FileError as Network::load, and for a network without a description.
  static TableModel load(const std::filesystem::path& path);

  Network& network() { return *network_; }
  const InputDescription& description() const { return network_->inputDescription(); }
  /// Columns are found by their names; the label's column is not needed. @throws FileError as tableFeatures;
  /// NonFinitePrediction naming the line of a row for which the network has a number that is NaN or infinite.
  Predictions predict(const Table& table);
  /// Predicts the rows that have a label and compares: classes, or numbers in the table's own units.
  /// @throws FileError for a column that is missing, or a label that is no class of the model's or no number.
  AnyEvaluation evaluate(const Table& table);

 private:
  std::unique_ptr<Network> network_;
};

}  // namespace muster
