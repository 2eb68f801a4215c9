#include "muster/datasets/source/detail/deal_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/base/text_table.h"
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

/// How many examples of a class a part has, and those that it was drawn from have besides.
struct HeldOut {
  std::int64_t held = 0, others = 0;
};

/// The first names, as in " (a, b, c, ...)".
std::string someOf(std::span<const std::int64_t> classes, std::span<const std::string> names) {
  constexpr std::size_t kMost = 3;
  std::string text;
  for (const auto c : classes.first(std::min(classes.size(), kMost))) {
    const auto place = static_cast<std::size_t>(c);
    text += fmt::format("{}{}", text.empty() ? "" : ", ",
                        place < names.size() ? csvField(names[place]) : fmt::format("{}", c));
  }
  return fmt::format(" ({}{})", text, classes.size() > kMost ? ", ..." : "");
}

/// @param part  as in "validation".  @param classes  [class] of the examples that the part was drawn from.
std::string lackingRemark(const DataSource& d, std::string_view part,
                          const std::map<std::int64_t, HeldOut>& classes,
                          std::span<const std::string> names) {
  std::vector<std::int64_t> lacking;
  std::int64_t all = 0, held = 0, fewest = 0;  // of a class that can be in both
  for (const auto& [c, of] : classes) {
    const auto count = of.held + of.others;
    all += count;
    held += of.held;
    if (count < 2) continue;
    fewest = fewest == 0 ? count : std::min(fewest, count);
    if (of.held == 0) lacking.push_back(c);
  }
  if (held == 0 || lacking.empty()) return {};
  // A class of n examples of all N gives n h / N of h, rounded; it gives one if that is 1 or more.
  const std::int64_t enough = (all + fewest - 1) / fewest;
  const bool one = lacking.size() == 1;
  return fmt::format("{} of {} {} no {} {}{}, so the scores say nothing of {}; {}", lacking.size(),
                     plural(classes.size(), "class", "classes"), one ? "has" : "have", part, nounOf(d),
                     someOf(lacking, names), one ? "it" : "them",
                     enough <= all / 2 ? fmt::format("data.{}Examples={} has one of each", part, enough)
                                       : fmt::format("it needs more {}s of the rare classes", nounOf(d)));
}

}  // namespace

std::vector<std::string> lackingClasses(const DataSource& d, std::span<const std::int64_t> classes,
                                        const DataRows& rows, std::span<const std::string> names) {
  using Counts = std::map<std::int64_t, HeldOut>;
  const auto add = [&](std::span<const std::int64_t> part, std::int64_t HeldOut::*count, Counts& counts) {
    for (const auto row : part) ++(counts[classes[static_cast<std::size_t>(row)]].*count);
  };
  std::vector<std::string> all;
  Counts validation;
  add(rows.train, &HeldOut::others, validation);
  add(rows.validation, &HeldOut::held, validation);
  all.push_back(lackingRemark(d, "validation", validation, names));
  if (drawsTests(d)) {
    Counts test;
    add(rows.train, &HeldOut::others, test);
    add(rows.validation, &HeldOut::others, test);
    add(rows.test, &HeldOut::held, test);
    all.push_back(lackingRemark(d, "test", test, names));
  }
  std::erase(all, "");
  return all;
}

DataRows dealRows(const DataSource& d, std::span<const std::int64_t> classes, std::int64_t limit,
                  bool ownTest) {
  if (classes.empty()) throw FileError(d.train.empty() ? d.trainImages : d.train, "has no examples");
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
