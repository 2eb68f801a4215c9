#include "muster/datasets/source/detail/deal_rows.h"

#include <iterator>
#include <utility>

#include "muster/core/data/split.h"
#include "muster/datasets/source/detail/held_out.h"

namespace muster::detail {
namespace {

/// The rows of a part, divided by the classes of all rows, each class in equal shares.
RowSplit splitPart(std::span<const std::int64_t> classes, std::span<const std::int64_t> rows,
                   std::int64_t count, std::uint64_t seed) {
  std::vector<std::int64_t> own;
  for (const auto row : rows) own.push_back(classes[static_cast<std::size_t>(row)]);
  auto split = splitRows(own, count, seed);
  for (auto* part : {&split.first, &split.second})
    for (auto& row : *part) row = rows[static_cast<std::size_t>(row)];
  return split;
}

}  // namespace

DataRows dealRows(const DataSource& d, std::span<const std::int64_t> classes, std::int64_t limit,
                  bool ownTest) {
  DataRows rows{.train = firstRows(classes, limit)};
  const auto holdOut = [&](std::int64_t part, std::vector<std::int64_t>& into) {
    if (part == std::ssize(rows.train)) return;
    auto split = splitPart(classes, rows.train, part, splitSeed(d));
    rows.train = std::move(split.first);
    into = std::move(split.second);
  };
  if (!ownTest) holdOut(untestedPart(d, std::ssize(rows.train)), rows.test);
  holdOut(trainingPart(d, std::ssize(rows.train)), rows.validation);
  return rows;
}

PartHashes partHashes(const DataRows& rows, std::span<const std::uint64_t> train,
                      const std::vector<std::uint64_t>* test) {
  const auto part = [&](std::span<const std::uint64_t> all, std::span<const std::int64_t> of) {
    std::vector<std::uint64_t> hashes;
    for (const auto row : of) hashes.push_back(all[static_cast<std::size_t>(row)]);
    return hashes;
  };
  return {.train = part(train, rows.train),
          .validation = part(train, rows.validation),
          .test = part(test != nullptr ? *test : train, rows.test),
          .ownTest = test != nullptr};
}

}  // namespace muster::detail
