#include "muster/datasets/table_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/data/output_names.h"
#include "muster/core/eval/detail/rows.h"
#include "muster/datasets/detail/unknown_words.h"
#include "muster/datasets/table_description.h"
#include "muster/datasets/table_examples.h"

namespace muster {
namespace {

constexpr std::int64_t kRowsAtOnce = 1024;

/// @throws InvalidArgument if the description is not one of a table that fits the network.
void requireTableFits(const Network& network) {
  const auto& description = network.inputDescription();
  require(!description.pictures, "it is a model of pictures, not of a table; PictureModel predicts with it");
  require(!description.columns.empty(),
          "the model does not know the columns of its table; it was trained on "
          "other data, or saved without setInputDescription");
  require(!outputNames(description).empty(), "the model's outputs have no names");
  requireOutputs(description, network.outputShapes().back().second.elements());
}

}  // namespace

TableModel::TableModel(std::unique_ptr<Network> network) : network_(std::move(network)) {
  require(network_ != nullptr, "TableModel: there is no network");
  requireTableFits(*network_);
}

TableModel TableModel::load(const std::filesystem::path& path) {
  try {
    return TableModel(Network::load(path));
  } catch (const InvalidArgument& error) {
    throw FileError(path, error.what());
  }
}

Predictions TableModel::predict(const Table& table) {
  const Tensor features = tableFeatures(description(), table, allRows(table));
  detail::logUnknownWords(description(), table);
  const std::int64_t count = table.rows(), width = network_->outputShapes().back().second.elements();
  Tensor outputs = Tensor::empty({count, width});
  for (std::int64_t begin = 0; begin < count; begin += kRowsAtOnce) {
    const std::int64_t end = std::min(count, begin + kRowsAtOnce);
    const Tensor some = network_->output(features.rows(begin, end));
    std::copy_n(some.data<float>(), (end - begin) * width, outputs.data<float>() + begin * width);
  }
  for (std::int64_t row = 0; row < count; ++row)
    detail::requireFinitePredictions(detail::rowOf(outputs, row), row, {count}, "predict", [&] {
      return fmt::format(" (line {} of {}){}", table.line(row), table.origin().string(),
                         detail::featuresRemark(features, row, description().featureNames()));
    });
  return namedOutputs(description(), outputs, network_->task());
}

AnyEvaluation TableModel::evaluate(const Table& table) {
  const auto& targets = description().targets;
  const auto& label = targets.empty() ? description().label : targets.front().name;
  const auto labelled = labelledRows(table, label, !targets.empty());
  detail::logUnknownWords(description(), table, labelled);
  auto rows = tableIterator(description(), table, labelled, kRowsAtOnce);
  return network_->evaluateTask(rows);
}

}  // namespace muster
