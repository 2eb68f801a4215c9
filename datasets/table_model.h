#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "muster/core/nn/network.h"
#include "muster/datasets/table.h"

namespace muster {

/// What a TableModel says of rows.
struct TablePredictions {
  std::vector<std::string> names = {};  ///< [column of `values`] the classes, or the numbers to predict
  Tensor values = {};  ///< float32 [N, names]: probabilities, or numbers in the table's own units
  std::vector<std::string> classes = {};  ///< [row] the most probable one; empty for a regression
};

/// A trained network with its `InputDescription`: predicts rows of tables.
///
/// ```cpp
/// auto model = TableModel::load("model.safetensors");
/// const auto predicted = model.predict(readTable("new.csv"));
/// fmt::print("{}\n", predicted.classes.front());
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

 private:
  std::unique_ptr<Network> network_;
};

/// Names the outputs of a network for examples: the most probable class, and numbers in their own units.
/// One output with classes is the probability of the second one, which is predicted above 0.5.
/// @param outputs  float32 [N, outputs].
/// @throws InvalidArgument if the description names another number of outputs, or both classes and numbers.
TablePredictions namedOutputs(const InputDescription& description, const Tensor& outputs);

}  // namespace muster
