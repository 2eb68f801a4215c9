#include "muster/parallel/training/memory_need.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/nn/step_memory.h"
#include "muster/parallel/strategies/coded_replicas.h"
#include "muster/parallel/training/named_call.h"

namespace muster {
namespace {

/// See MergeUndo.
constexpr std::string_view kBefore = "merged copy before a merge";

// Measured with glibc 2.36 and oneDNN 2.6: a thread's stack and its part of the allocator; the scratch
// memory of dnnl_sgemm and its kernels' code, which is less for small layers.
constexpr std::int64_t kThread = 100'000, kMostScratch = 1'200'000;

}  // namespace

MemoryNeed::MemoryNeed(Model& model, const Strategy& strategy, const NodePlace& place, int groups,
                       const ReplicasOnHost& replicas)
    : workers_(place.local), onCpu_(replicas.onCpu) {
  std::int64_t parameters = 0;
  DType type = DType::Float32;
  const StrategyTraits traits =
      callStrategy("describe its traits", [&] { return strategy.traits(place.workers()); });
  const bool steps = traits.localWork == LocalWork::Step;
  for (const auto* block : model.state()) {
    const auto bytes = static_cast<std::int64_t>(block->values.bytes());
    if (block->kind == BlockKind::Parameters) {
      parameters += bytes;
      type = block->values.dtype();
    }
    if (onCpu_) add(std::string(nameOf(block->kind)), bytes, workers_, true);
    const bool touched = block->kind != BlockKind::Gradients || !steps;
    if (replicas.mirrored && touched && block->kind != BlockKind::Counters)
      add(fmt::format("mirrors of {}", nameOf(block->kind)), bytes, workers_, true);
    if (block->kind == BlockKind::Gradients) continue;
    add("merged copy", bytes, 1, false);
    const bool kept = traits.mayThrow && (steps || block->kind == BlockKind::Statistics);
    if (place.nodes > 1 || kept) add(std::string(kBefore), bytes, 1, false);
  }
  addStrategy(strategy, traits, place, groups, parameters, type);
}

void MemoryNeed::addStrategy(const Strategy& strategy, const StrategyTraits& traits, const NodePlace& place,
                             int groups, std::int64_t parameters, DType parameterType) {
  using Place = StrategyBlock::Place;
  const auto blocks = callStrategy("name its blocks", [&] { return strategy.blocks(place.workers()); });
  const bool overNodes = place.nodes > 1;
  const std::int64_t senders = overNodes ? place.nodes : groups > 1 ? groups : workers_;
  const std::int64_t sendersHere = overNodes ? 1 : senders;
  bool flies = false;
  for (const auto& block : blocks) {
    const bool wide = parameterType == DType::Float32 && block.dtype == DType::Float64;
    const auto bytes = block.numbers > 0 ? block.numbers * static_cast<std::int64_t>(sizeof(double))
                                         : (wide ? 2 : 1) * parameters;
    const auto name = fmt::format("the strategy's {}", block.name);
    if (block.place == Place::MergedCopy) {
      add(name, bytes, 1, false);
      if ((overNodes || traits.mayThrow) && block.saved && !block.inFlight)
        add(std::string(kBefore), bytes, 1, false);
      flies = flies || (overNodes && block.inFlight && block.saved);
    } else {
      const std::int64_t count = block.place == Place::Replica ? workers_ : sendersHere;
      add(name, bytes, count, count == workers_);
    }
  }
  const auto elements = parameters / static_cast<std::int64_t>(sizeOf(parameterType));
  if (traits.hostBytes)
    add("what the strategy has in addition to its blocks",
        callStrategy("report its host memory", [&] { return traits.hostBytes(elements); }), 1, false);
  const auto coded = detail::codedMemory(blocks, senders < place.workers());
  if (flies && !coded.any) add("replicas in flight", parameters, workers_, true);
  add("means that are encoded", parameters, coded.ofSender * sendersHere, false);
  if (overNodes)
    add("decoded values", parameters, coded.ofNode + coded.ofOtherNode * (place.nodes - 1), false);
}

void MemoryNeed::add(std::string name, std::int64_t bytes, std::int64_t count, bool ofWorker) {
  const auto same = std::ranges::find(parts_, name, &Part::name);
  if (same != parts_.end())
    same->bytes += bytes;
  else
    parts_.push_back({std::move(name), bytes, count, ofWorker});
}

void MemoryNeed::addBatches(const Batch& batch, std::int64_t count) {
  add("batches", bytesOf(batch), count, false);
}

void MemoryNeed::addStep(Model& model, const Batch& batch, bool training, const ContextOptions& context) {
  const auto step = onCpu_ ? stepBytes(model, batch.examples(), training, context) : std::nullopt;
  if (!step) return;
  add("activations", *step, workers_, true);
  add("libraries", kThread + std::min(kMostScratch, bytesOfWorker()), workers_, true);
}

bool MemoryNeed::stepsMayExceed(const MemoryRoom& room) const {
  constexpr double kMost = 64;
  const auto libraries = static_cast<double>(workers_ * (kThread + kMostScratch));
  return (1 + kMost) * static_cast<double>(bytes()) + libraries > static_cast<double>(room.usable());
}

std::int64_t MemoryNeed::bytesOfWorker() const {
  std::int64_t sum = 0;
  for (const Part& part : parts_)
    if (part.ofWorker) sum += part.bytes;
  return sum;
}

std::int64_t MemoryNeed::bytes() const {
  std::int64_t sum = 0;
  for (const Part& part : parts_) sum += part.all();
  return sum;
}

std::string MemoryNeed::describe() const {
  constexpr std::int64_t kWorthSaying = 1'000'000;
  if (bytesOfWorker() < kWorthSaying) return "";
  return fmt::format(", each at least {}{}", megabytes(bytesOfWorker()), onCpu_ ? "" : " of host memory");
}

void MemoryNeed::requireRoom(const std::filesystem::path& root) const {
  constexpr std::size_t kNamed = 3;
  const auto room = memoryRoomFor(static_cast<double>(bytes()), root.native());
  if (!room || bytes() <= room->left) return;
  auto largest = parts_;
  std::ranges::stable_sort(largest, std::ranges::greater(), &Part::all);
  largest.resize(std::min(kNamed, largest.size()));
  std::vector<std::string> words;
  for (const Part& part : largest)
    words.push_back(part.count == 1
                        ? fmt::format("{} {}", part.name, megabytes(part.bytes))
                        : fmt::format("{} {} x {}", part.name, part.count, megabytes(part.bytes)));
  throw OutOfMemory(
      fmt::format("{} worker{} need{} at least {} of memory, but {}; most of it: {}; take fewer workers, a "
                  "smaller model or "
                  "fewer batches",
                  workers_, workers_ == 1 ? "" : "s", workers_ == 1 ? "s" : "", megabytes(bytes()),
                  muster::describe(*room), fmt::join(words, ", ")));
}

std::int64_t bytesOf(const Batch& batch) {
  std::int64_t bytes = 0;
  for (const auto* parts : {&batch.features, &batch.labels, &batch.masks})
    for (const auto& part : *parts) bytes += static_cast<std::int64_t>(part.value.bytes());
  return bytes;
}

std::string megabytes(std::int64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace muster
