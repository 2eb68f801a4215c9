#include "muster/parallel/run/detail/network_facts.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/eval/detail/rows.h"

namespace muster::detail {
namespace {

/// One more than the largest index.
std::int64_t above(const Tensor& indices, std::int64_t least) {
  for (const auto index : indices.span<std::int64_t>()) least = std::max(least, index + 1);
  return least;
}

/// Whether all rows [N, F] of a batch's labels whose weight is not 0 have a single 1 and else zeros.
bool isOneHot(const Tensor& labels, const Batch& batch) {
  if (labels.shape().rank() != 2 || labels.shape()[1] < 2) return false;
  const Tensor weights = batch.lossMask(labels.shape());
  for (std::int64_t row = 0; row < labels.shape()[0]; ++row)
    if (!isMasked(weights, row) && oneHotClass(rowOf(labels, row)) < 0) return false;
  return true;
}

}  // namespace

Shape NetworkFacts::image() const {
  require(input.rank() == 3 && classes > 0,
          "network: {} is for pictures [C, H, W] of classes, and an example is {}{}", name, input.toString(),
          classes > 0 ? "" : ", with numbers to predict");
  return input;
}

std::int64_t NetworkFacts::vocabulary() const {
  require(symbols > 0,
          "network: {} is for texts, as indices [T] with a label at each step, and an example is {}", name,
          input.toString());
  return symbols;
}

NetworkFacts factsOf(std::string name, LoadedData& data) {
  NetworkFacts facts{.name = std::move(name), .table = !data.description.columns.empty()};
  facts.classes = std::ssize(data.description.classes);
  Batch read, batch;
  DataSetIterator& any = data.any();
  any.reset(0);
  while (any.next(read)) {
    read.gatherInto(batch);
    const Tensor &features = batch.features.front().value, &labels = batch.labels.front().value;
    facts.input = features.shape().dropFirst();
    if (labels.dtype() != DType::Int64) {
      if (facts.classes > 0) return facts;
      facts.numbers = labels.shape().rank() == 2 ? labels.shape()[1] : 1;
      if (!isOneHot(labels, batch)) return facts;
      continue;
    }
    if (features.dtype() == DType::Int64 && labels.shape() == features.shape())
      facts.symbols = above(labels, above(features, facts.symbols));
    else if (facts.classes == 0 || data.description.classes.empty())
      facts.classes = above(labels, facts.classes);
    else
      return facts;
  }
  if (facts.numbers > 0) facts.classes = std::exchange(facts.numbers, 0);  // all labels are one-hot
  return facts;
}

std::string numbersRemark(const Network& network, LoadedData& data) {
  if (network.task() != Task::Regression || !data.description.targets.empty()) return {};
  Batch read, batch;
  DataSetIterator& any = data.any();
  any.reset(0);
  while (any.next(read)) {
    read.gatherInto(batch);
    const Tensor& labels = batch.labels.front().value;
    if (labels.dtype() != DType::Float32 || labels.shape().rank() != 2) return {};
    const Tensor weights = batch.lossMask(labels.shape());
    for (std::int64_t row = 0; row < labels.shape()[0]; ++row)
      if (!isMasked(weights, row) &&
          !std::ranges::all_of(rowOf(labels, row), [](float value) { return value == 0 || value == 1; }))
        return {};
  }
  const auto columns = batch.labels.front().value.shape()[1];
  return fmt::format(
      "network: all labels are 0 or 1, and are predicted as numbers; to predict {0} of 0 or 1, give "
      "network.layers with an output of \"units\": {1}, \"loss\": \"bce\"; classes have to be int64 [N]{2}",
      plural(columns, "label"), columns, columns > 1 ? ", or rows with a single 1" : "");
}

}  // namespace muster::detail
