#include "muster/datasets/source/detail/example_hashes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <unordered_map>

#include "muster/core/io/output_path.h"
#include "muster/datasets/source/detail/held_out.h"

namespace muster::detail {
namespace {

/// Each step can be undone, so that bytes that differ in one word have different hashes.
std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15;
  hash = (hash ^ word) * kFactor;
  return hash ^ (hash >> 32);
}

using Hashes = std::vector<std::uint64_t>;

ExampleContents contentsOf(std::initializer_list<const Hashes*> parts) {
  std::int64_t examples = 0;
  std::uint64_t ordered = 0, unordered = 0;
  for (const auto* part : parts) {
    if (part->empty()) continue;
    examples += std::ssize(*part);
    ordered = mixed(ordered, part->size());
    for (const auto hash : *part) {
      ordered = mixed(ordered, hash);
      unordered += hash;
    }
  }
  return {examples, fmt::format("{:016x}", ordered), fmt::format("{:016x}", unordered)};
}

/// "data.train rows.csv" and "data.test more.csv".
std::string fieldsOf(const DataSource& d) {
  if (d.type == "idx")
    return fmt::format("data.testImages {}, data.trainImages {}", d.testImages, d.trainImages);
  return fmt::format("data.test {}, data.train {}", d.test, d.train);
}

using Times = std::unordered_map<std::uint64_t, std::int64_t>;

Times timesOf(std::initializer_list<const Hashes*> parts) {
  Times times;
  for (const auto* part : parts)
    for (const auto hash : *part) ++times[hash];
  return times;
}

// Note [Equal by chance]
// Two parts of the same data share examples if the data have repeats. Two parts can show how many: the share
// of training examples that occur twice, and what the test's own repeats make of each example's probability,
// k occurrences of n being (k - 1) / (n - 1). Few training examples show too few repeats, so the larger share
// counts. Training examples that were copied, to give a rare class more weight, show too many: then so many
// test examples would be equal, too, that some are. With t examples that occur twice in the test, the
// probability of another pair of its examples is hardly above (3 + 2t) by the number of pairs.

/// The share of test examples that are equal to training examples by chance.
double shareByChance(const Times& known, std::int64_t examples, const Hashes& test) {
  if (test.size() < 2) return 1;
  const auto trained = static_cast<double>(examples), tested = static_cast<double>(test.size());
  const auto times = timesOf({&test});
  double twins = 0;
  for (const auto& [hash, count] : known) twins += count > 1 ? static_cast<double>(count) : 0;
  const auto repeated = std::ranges::count_if(times, [](const auto& one) { return one.second > 1; });
  const double unseen = (3 + 2 * static_cast<double>(repeated)) / (tested * (tested - 1) / 2);
  double seen = 0, most = 0;
  for (const auto& [hash, count] : times) {
    const auto k = static_cast<double>(count), probability = (k - 1) / (tested - 1);
    seen += k * (1 - std::pow(1 - probability, trained));
    most += k * (1 - std::pow(1 - std::min(1.0, probability + unseen), trained));
  }
  return std::min(std::max(twins / trained, seen / tested), most / tested);
}

}  // namespace

std::string_view nounOf(const DataSource& d) {
  if (d.type == "csv") return "row";
  return isOneOf(d.type, {"safetensors", "mixtures"}) ? "example" : "image";
}

std::uint64_t hashOf(std::span<const std::byte> bytes, std::uint64_t before) {
  std::uint64_t hash = mixed(before, bytes.size());
  std::uint64_t word = 0;
  for (; bytes.size() >= sizeof(word); bytes = bytes.subspan(sizeof(word))) {
    std::memcpy(&word, bytes.data(), sizeof(word));
    hash = mixed(hash, word);
  }
  if (bytes.empty()) return hash;
  word = 0;
  std::memcpy(&word, bytes.data(), bytes.size());
  return mixed(hash, word);
}

Hashes hashesOf(const Table& table, const InputDescription& description, std::span<const std::int64_t> rows) {
  std::vector<std::size_t> places;
  const auto add = [&](const std::string& name) {
    if (const auto place = table.find(name)) places.push_back(*place);
  };
  for (const auto& column : description.columns) add(column.name);
  for (const auto& target : description.targets) add(target.name);
  if (description.targets.empty()) add(description.label);
  Hashes hashes;
  hashes.reserve(rows.size());
  for (const auto row : rows) {
    std::uint64_t hash = 0;
    for (const auto place : places) hash = hashOf(std::as_bytes(std::span(table.cell(row, place))), hash);
    hashes.push_back(hash);
  }
  return hashes;
}

Hashes hashesOf(const ImageSet& images) {
  Hashes hashes;
  for (std::int64_t i = 0; i < images.size(); ++i)
    hashes.push_back(hashOf(std::as_bytes(images.image(i)), static_cast<std::uint64_t>(images.label(i))));
  return hashes;
}

Hashes hashesOf(const TensorFile& examples) {
  const auto bytesOf = [](const Tensor& all, std::int64_t row) {
    const Tensor one = all.rows(row, row + 1);
    return std::span(static_cast<const std::byte*>(one.raw()), one.bytes());
  };
  Hashes hashes;
  for (std::int64_t i = 0; i < examples.features.shape()[0]; ++i) {
    std::uint64_t hash = hashOf(bytesOf(examples.labels, i));
    for (const auto& mask : examples.masks) hash = hashOf(bytesOf(mask.value, i), hash);
    hashes.push_back(hashOf(bytesOf(examples.features, i), hash));
  }
  return hashes;
}

DataContents contentsOf(const PartHashes& of) {
  if (of.ownTest) return {contentsOf({&of.train, &of.validation}), contentsOf({&of.test})};
  return {contentsOf({&of.train, &of.validation, &of.test}), {}};
}

std::string sameRemark(const DataSource& d) {
  return fmt::format(
      "the test {0}s are the training {0}s ({1}), so the scores on them say nothing of new {0}s", nounOf(d),
      fieldsOf(d));
}

std::string sharedRemark(const DataSource& d, const PartHashes& of) {
  if (!of.ownTest || !isOfOwnFiles(d)) return {};
  const auto contents = contentsOf(of);
  if (contents.test.unordered == contents.training.unordered || isSameFile(d.test, d.train))
    return sameRemark(d);
  const auto known = timesOf({&of.train, &of.validation});
  const auto tested = static_cast<double>(of.test.size());
  const auto byChance = tested * shareByChance(known, contents.training.examples, of.test);
  const auto shared = std::ranges::count_if(of.test, [&](auto hash) { return known.contains(hash); });
  if (static_cast<double>(shared) <= 2 * byChance + 0.01 * tested + 2) return {};
  return fmt::format(
      "{0} of {1} test {2}s are equal to training {2}s ({3}), so the scores say too little of new {2}s",
      shared, of.test.size(), nounOf(d), fieldsOf(d));
}

}  // namespace muster::detail
