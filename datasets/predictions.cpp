#include "muster/datasets/predictions.h"

#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/data/output_names.h"
#include "muster/core/eval/detail/rows.h"

namespace muster {

Predictions namedOutputs(const InputDescription& description, const Tensor& outputs, Task task) {
  require(outputs.shape().rank() == 2, "predict: outputs {} are no rows of numbers", outputs.toString());
  const std::int64_t count = outputs.shape()[0], width = outputs.shape()[1];
  Predictions predictions{.names = outputNames(description)};
  require(!predictions.names.empty(),
          "the model's {} no names: its description has neither classes nor "
          "numbers to predict",
          width == 1 ? "output has" : "outputs have");
  requireOutputs(description, width);
  const bool classified = !description.classes.empty() && task == Task::Classification;
  const bool single = classified && width == 1;
  predictions.values = Tensor::empty({count, std::ssize(predictions.names)});
  const float* from = outputs.data<float>();
  float* to = predictions.values.data<float>();
  for (std::int64_t i = 0; i < count; ++i, from += width, to += predictions.names.size()) {
    detail::requireFinitePredictions({from, static_cast<std::size_t>(width)}, i, {count}, "predict");
    if (single) {
      to[0] = 1 - from[0];
      to[1] = from[0];
    } else if (!description.targets.empty()) {
      for (std::int64_t t = 0; t < width; ++t) {
        const auto& target = description.targets[static_cast<std::size_t>(t)];
        predictions.numbers.push_back(target.mean + target.scale * from[t]);
        to[t] = static_cast<float>(predictions.numbers.back());
      }
    } else {
      std::copy_n(from, width, to);
    }
    if (!classified) continue;
    const auto best = single ? (from[0] > 0.5f ? 1 : 0) : std::max_element(to, to + width) - to;
    predictions.classes.push_back(predictions.names[static_cast<std::size_t>(best)]);
  }
  return predictions;
}

const std::string& Predictions::classOf(std::int64_t row) const {
  require(!classes.empty() || names.empty(),
          "predictions: a regression has no classes; valueOf has its numbers");
  require(row >= 0 && row < std::ssize(classes), "predictions: there is no row {}, only {}", row,
          plural(classes.size(), "row"));
  return classes[static_cast<std::size_t>(row)];
}

float Predictions::valueOf(std::int64_t row, std::int64_t column) const {
  const auto rows = values.defined() ? values.shape()[0] : 0, columns = std::ssize(names);
  require(row >= 0 && row < rows && column >= 0 && column < columns,
          "predictions: there is no row {} with a column {} in {} of {}", row, column, plural(rows, "row"),
          columns);
  return values.data<float>()[row * columns + column];
}

}  // namespace muster
