#include "muster/parallel/run/detail/network_facts.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "muster/core/base/error.h"

namespace muster::detail {
namespace {

/// One more than the largest index.
std::int64_t above(const Tensor& indices, std::int64_t least) {
  for (const auto index : indices.span<std::int64_t>()) least = std::max(least, index + 1);
  return least;
}

/// Whether all rows have a single 1 and else zeros.
bool isOneHot(const Tensor& labels) {
  const auto columns = static_cast<std::size_t>(labels.shape()[1]);
  const auto values = labels.span<float>();
  for (std::size_t row = 0; row < values.size(); row += columns) {
    const auto of = values.subspan(row, columns);
    if (std::ranges::count(of, 1.0f) != 1 || std::ranges::count(of, 0.0f) != std::ssize(of) - 1) return false;
  }
  return columns > 1;
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
  Batch batch;
  DataSetIterator& any = data.any();
  any.reset(0);
  while (any.next(batch)) {
    const Tensor features = batch.features.front().gathered(), labels = batch.labels.front().gathered();
    facts.input = features.shape().dropFirst();
    if (labels.dtype() != DType::Int64) {
      if (facts.classes > 0) return facts;
      if (labels.shape().rank() == 2)
        (isOneHot(labels) ? facts.classes : facts.numbers) = labels.shape()[1];
      else
        facts.numbers = 1;
      return facts;
    }
    if (features.dtype() == DType::Int64 && labels.shape() == features.shape())
      facts.symbols = above(labels, above(features, facts.symbols));
    else if (facts.classes == 0 || data.description.classes.empty())
      facts.classes = above(labels, facts.classes);
    else
      return facts;
  }
  return facts;
}

}  // namespace muster::detail
