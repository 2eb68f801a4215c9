#include "muster/core/data/split.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/random.h"
#include "muster/core/data/in_memory.h"

namespace muster {
namespace {

/// The rows of each class, in order.
using RowsByClass = std::vector<std::vector<std::int64_t>>;

RowsByClass byClass(std::span<const std::int64_t> classes) {
  std::map<std::int64_t, std::vector<std::int64_t>> rows;
  for (std::size_t i = 0; i < classes.size(); ++i) rows[classes[i]].push_back(static_cast<std::int64_t>(i));
  RowsByClass all;
  for (auto& [label, of] : rows) all.push_back(std::move(of));
  return all;
}

/// How many rows each class gives to a part of `count` rows: its share rounded down, and one more for the
/// classes with the largest remainders, of equal ones those that come first in `order`. While another class
/// has rows to spare, none gives less than one, because a part without a class cannot teach it.
std::vector<std::int64_t> sharesOf(const RowsByClass& classes, std::int64_t count, std::int64_t all,
                                   std::vector<std::size_t> order) {
  std::vector<std::int64_t> shares, missing;  // [class]; what rounding took, in parts of a row
  for (const auto& rows : classes) {
    const std::int64_t parts = count * static_cast<std::int64_t>(rows.size());
    shares.push_back(parts / all);
    missing.push_back(shares.back() == 0 ? all : parts % all);
  }
  const auto most = [&](std::size_t c) { return static_cast<std::int64_t>(classes[c].size()); };
  auto left = count - std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  const auto drawn = order;
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t c) { return missing[c]; });
  for (const auto c : order)
    if (left > 0 && shares[c] < most(c)) ++shares[c], --left;
  // Classes that were raised to one may have used more than what was left: the largest share gives it back.
  for (const auto c : order)
    if (shares[c] == 0 && count >= static_cast<std::int64_t>(classes.size()))
      --shares[*std::ranges::max_element(drawn, {}, [&](std::size_t k) { return shares[k]; })], ++shares[c];
  return shares;
}

std::vector<std::size_t> inOrder(std::size_t classes) {
  std::vector<std::size_t> order(classes);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

void shuffle(auto& values, const RandomStream& stream, std::uint64_t& drawn) {
  for (std::size_t i = values.size(); i-- > 1;) std::swap(values[i], values[stream.below(drawn++, i + 1)]);
}

RowSplit divide(const RowsByClass& classes, const std::vector<std::int64_t>& shares) {
  RowSplit parts;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    const auto border = classes[c].begin() + shares[c];
    parts.first.insert(parts.first.end(), classes[c].begin(), border);
    parts.second.insert(parts.second.end(), border, classes[c].end());
  }
  std::ranges::sort(parts.first);
  std::ranges::sort(parts.second);
  return parts;
}

}  // namespace

RowSplit splitRows(std::span<const std::int64_t> classes, std::int64_t count, std::uint64_t seed) {
  const auto all = static_cast<std::int64_t>(classes.size());
  require(count >= 1 && count <= all, "split: a part of {} examples cannot be taken from {}", count, all);
  auto rows = byClass(classes);
  require(count >= static_cast<std::int64_t>(rows.size()),
          "split: {} examples to train with leave out a class; there are {} classes, and each needs one",
          count, rows.size());
  const RandomStream stream(seed, "split");
  std::uint64_t drawn = 0;
  for (auto& of : rows) shuffle(of, stream, drawn);
  auto order = inOrder(rows.size());
  shuffle(order, stream, drawn);  // last, so that it changes no draw of rows
  return divide(rows, sharesOf(rows, count, all, std::move(order)));
}

RowSplit splitRows(std::int64_t examples, std::int64_t count, std::uint64_t seed) {
  require(examples >= 0, "split: the number of examples cannot be negative, got {}", examples);
  return splitRows(std::vector<std::int64_t>(static_cast<std::size_t>(examples)), count, seed);
}

std::vector<std::int64_t> firstRows(std::span<const std::int64_t> classes, std::int64_t count) {
  require(count >= 1, "limit: at least 1 example is needed, got {}", count);
  const auto all = static_cast<std::int64_t>(classes.size());
  if (count >= all) {
    std::vector<std::int64_t> rows(classes.size());
    std::iota(rows.begin(), rows.end(), std::int64_t{0});
    return rows;
  }
  const auto rows = byClass(classes);
  return divide(rows, sharesOf(rows, count, all, inOrder(rows.size()))).first;
}

std::int64_t countOf(double fraction, std::int64_t examples) {
  require(fraction > 0 && fraction < 1, "split: the fraction must be between 0 and 1, got {}", fraction);
  require(examples >= 2, "split: two parts need two examples, got {}", examples);
  return std::clamp<std::int64_t>(std::llround(fraction * static_cast<double>(examples)), 1, examples - 1);
}

std::pair<LabelledTensors, LabelledTensors> split(const Tensor& features, const Tensor& labels,
                                                  double fraction, std::uint64_t seed) {
  const bool rows = features.defined() && features.shape().rank() > 0;
  return splitAt(features, labels, countOf(fraction, rows ? features.shape()[0] : 0), seed);
}

std::pair<LabelledTensors, LabelledTensors> splitAt(const Tensor& features, const Tensor& labels,
                                                    std::int64_t count, std::uint64_t seed) {
  require(features.defined() && labels.defined() && features.shape().rank() > 0 &&
              labels.shape().rank() > 0 && features.shape()[0] == labels.shape()[0],
          "split: features {} and labels {} differ in their examples", features.toString(),
          labels.toString());
  const std::int64_t all = features.shape()[0];
  const bool classes = labels.dtype() == DType::Int64 && labels.shape().rank() == 1;
  const auto parts =
      classes ? splitRows(labels.span<std::int64_t>(), count, seed) : splitRows(all, count, seed);
  const auto take = [](const Tensor& source, const std::vector<std::int64_t>& rows) {
    const auto shape = source.shape().dropFirst().prepend(static_cast<std::int64_t>(rows.size()));
    Tensor part = Tensor::empty(shape, source.dtype());
    gatherRows(source, rows, part);
    return part;
  };
  return {{take(features, parts.first), take(labels, parts.first)},
          {take(features, parts.second), take(labels, parts.second)}};
}

}  // namespace muster
