#include "muster/parallel/evaluation/node_counts.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <vector>

#include "muster/core/base/error.h"

namespace muster {
namespace {

constexpr std::int64_t kMostNumbers = std::int64_t{1} << 27;  // for each node: 1 GiB

}  // namespace

std::optional<AnyEvaluation> addUpNodes(Exchange& exchange, const NodeLink& link, std::int64_t failedAt,
                                        const std::optional<AnyEvaluation>& own) {
  struct Report {
    std::int64_t failedAt;
    std::int64_t size;  // of the numbers; 0: none
    std::int64_t task, columns;
  };
  auto numbers = own ? own->toNumbers() : std::vector<std::int64_t>();
  const std::array mine = {Report{failedAt, static_cast<std::int64_t>(numbers.size()),
                                  own ? static_cast<std::int64_t>(own->task()) : 0,
                                  own ? own->columns() : 0}};
  std::vector<Report> all(static_cast<std::size_t>(link.nodes()));
  exchange.allGather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));

  const auto first = std::ranges::min_element(all, {}, &Report::failedAt);
  if (first->failedAt < std::numeric_limits<std::int64_t>::max()) {
    const int node = static_cast<int>(first - all.begin());
    if (node == link.node()) return {};
    throw TrainingError(fmt::format("evaluate: {} has failed; its own message says why", link.nameOf(node)),
                        -1, {});
  }
  const auto most = std::ranges::max_element(all, {}, &Report::size);
  for (const Report& one : all)
    require(one.size == 0 || (one.task == most->task && one.columns == most->columns),
            "evaluate: {} predicts other classes than {}", link.nameOf(static_cast<int>(&one - all.data())),
            link.nameOf(static_cast<int>(most - all.begin())));
  if (most->size == 0) return {};
  require(most->size <= kMostNumbers, "evaluate: {} counts {} numbers, and {} are allowed",
          link.nameOf(static_cast<int>(most - all.begin())), most->size, kMostNumbers);

  const auto size = static_cast<std::size_t>(most->size);
  numbers.resize(size);
  std::vector<std::int64_t> counts(size * all.size());
  exchange.allGather(std::as_bytes(std::span(numbers)), std::as_writable_bytes(std::span(counts)));
  std::optional<AnyEvaluation> sum;
  for (std::size_t n = 0; n < all.size(); ++n) {
    if (all[n].size == 0) continue;
    const auto part = AnyEvaluation::fromNumbers(
        std::span(counts).subspan(n * size, static_cast<std::size_t>(all[n].size)));
    if (sum)
      sum->merge(part);
    else
      sum = part;
  }
  return sum;
}

}  // namespace muster
