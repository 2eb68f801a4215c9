#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "muster/core/eval/any_evaluation.h"
#include "muster/core/nn/network.h"
#include "muster/datasets/table.h"

namespace muster {

/// What a TableModel says of rows.
struct TablePredictions {
  std::vector<std::string> names = {};  ///< [column of `values`] the classes, or the numbers to predict
  Tensor values = {};  ///< float32 [N, names]: probabilities, or numbers in the table's own units
  std::vector<std::string> classes = {};  ///< [row] the most probable one; empty for a regression

  /// The most probable class of a row. @throws InvalidArgument for a regression, or a row that does not
  /// exist.
  const std::string& classOf(std::int64_t row) const;
  /// A probability, or the number to predict. @throws InvalidArgument for one that does not exist.
  float valueOf(std::int64_t row, std::int64_t column = 0) const;
};

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
  /// Columns are found by their names; the label's column is not needed. @throws FileError as tableFeatures.
  TablePredictions predict(const Table& table);
  /// Predicts the rows that have a label and compares: classes, or numbers in the table's own units.
  /// @throws FileError for a column that is missing, or a label that is no class of the model's or no number.
  AnyEvaluation evaluate(const Table& table);

 private:
  std::unique_ptr<Network> network_;
};

/// Names the outputs of a network for examples: the most probable class, and numbers in their own units.
/// One output with classes is the probability of the second one, which is predicted above 0.5.
/// @param outputs  float32 [N, outputs].
/// @throws InvalidArgument if the description names another number of outputs, or both classes and numbers.
TablePredictions namedOutputs(const InputDescription& description, const Tensor& outputs);

}  // namespace muster
