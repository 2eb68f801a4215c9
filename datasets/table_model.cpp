#include "muster/datasets/table_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/datasets/detail/unknown_words.h"
#include "muster/datasets/table_description.h"
#include "muster/datasets/table_examples.h"

namespace muster {
namespace {

constexpr std::int64_t kBatch = 1024;

/// Outputs are the probabilities of classes or numbers: one of them has names.
void requireFits(const InputDescription& description, std::int64_t outputs) {
  const auto classes = std::ssize(description.classes), targets = std::ssize(description.targets);
  require(classes == 0 || targets == 0,
          "the model's description names both classes and numbers to predict; its outputs are one of them");
  require(classes + targets == outputs || (outputs == 1 && classes == 2),
          "the model has {}, and its description names {}", plural(outputs, "output"), classes + targets);
}

/// @throws InvalidArgument if the description is not one of a table that fits the network.
void requireFits(const Network& network) {
  const auto& description = network.inputDescription();
  require(!description.pictures, "it is a model of pictures, not of a table; PictureModel predicts with it");
  require(!description.columns.empty(),
          "the model does not know the columns of its table; it was trained on "
          "other data, or saved without setInputDescription");
  requireFits(description, network.outputShapes().back().second.elements());
}

}  // namespace

TablePredictions namedOutputs(const InputDescription& description, const Tensor& outputs) {
  require(outputs.shape().rank() == 2, "predict: outputs {} are no rows of numbers", outputs.toString());
  const std::int64_t count = outputs.shape()[0], width = outputs.shape()[1];
  requireFits(description, width);
  const auto& classes = description.classes;
  TablePredictions predictions{.names = classes};
  for (const auto& target : description.targets) predictions.names.push_back(target.name);
  const bool single = width == 1 && classes.size() == 2;
  predictions.values = Tensor::empty({count, std::ssize(predictions.names)});
  const float* from = outputs.data<float>();
  float* to = predictions.values.data<float>();
  for (std::int64_t i = 0; i < count; ++i, from += width, to += predictions.names.size()) {
    if (single) {
      to[0] = 1 - from[0];
      to[1] = from[0];
    } else if (!description.targets.empty()) {
      for (std::int64_t t = 0; t < width; ++t) {
        const auto& target = description.targets[static_cast<std::size_t>(t)];
        to[t] = static_cast<float>(target.mean + target.scale * from[t]);
      }
    } else {
      std::copy_n(from, width, to);
    }
    if (classes.empty()) continue;
    const auto best = single ? (from[0] > 0.5f ? 1 : 0) : std::max_element(to, to + width) - to;
    predictions.classes.push_back(classes[static_cast<std::size_t>(best)]);
  }
  return predictions;
}

const std::string& TablePredictions::classOf(std::int64_t row) const {
  require(!classes.empty() || names.empty(),
          "predictions: a regression has no classes; valueOf has its numbers");
  require(row >= 0 && row < std::ssize(classes), "predictions: there is no row {}, only {}", row,
          plural(classes.size(), "row"));
  return classes[static_cast<std::size_t>(row)];
}

float TablePredictions::valueOf(std::int64_t row, std::int64_t column) const {
  const auto rows = values.defined() ? values.shape()[0] : 0, columns = std::ssize(names);
  require(row >= 0 && row < rows && column >= 0 && column < columns,
          "predictions: there is no row {} with a column {} in {} of {}", row, column, plural(rows, "row"),
          columns);
  return values.data<float>()[row * columns + column];
}

TableModel::TableModel(std::unique_ptr<Network> network) : network_(std::move(network)) {
  require(network_ != nullptr, "TableModel: there is no network");
  requireFits(*network_);
}

TableModel TableModel::load(const std::filesystem::path& path) {
  try {
    return TableModel(Network::load(path));
  } catch (const InvalidArgument& error) {
    throw FileError(path, error.what());
  }
}

TablePredictions TableModel::predict(const Table& table) {
  const Tensor features = tableFeatures(description(), table, allRows(table));
  detail::logUnknownWords(description(), table);
  const std::int64_t count = table.rows(), width = network_->outputShapes().back().second.elements();
  Tensor outputs = Tensor::empty({count, width});
  for (std::int64_t begin = 0; begin < count; begin += kBatch) {
    const std::int64_t end = std::min(count, begin + kBatch);
    const Tensor some = network_->output(features.rows(begin, end));
    std::copy_n(some.data<float>(), (end - begin) * width, outputs.data<float>() + begin * width);
  }
  return namedOutputs(description(), outputs);
}

AnyEvaluation TableModel::evaluate(const Table& table) {
  const auto& targets = description().targets;
  const auto& label = targets.empty() ? description().label : targets.front().name;
  detail::logUnknownWords(description(), table);
  auto rows = tableIterator(description(), table, labelledRows(table, label, !targets.empty()), kBatch);
  return network_->evaluateTask(rows);
}

}  // namespace muster
