#include "muster/parallel/training/memory_need.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/device/memory_room.h"
#include "muster/parallel/training/strategy_failure.h"

namespace muster {
namespace {

std::string_view nameOf(BlockKind kind) {
  return kind == BlockKind::Parameters     ? "parameters"
         : kind == BlockKind::Gradients    ? "gradients"
         : kind == BlockKind::Statistics   ? "statistics"
         : kind == BlockKind::UpdaterState ? "updater state"
                                           : "counters";
}

}  // namespace

MemoryNeed::MemoryNeed(Model& model, const Strategy& strategy, int workers) : workers_(workers) {
  std::int64_t parameters = 0;
  for (const auto* block : model.state()) {
    const auto bytes = static_cast<std::int64_t>(block->values.bytes());
    if (block->kind == BlockKind::Parameters) parameters += bytes;
    add(std::string(nameOf(block->kind)), bytes, workers, true);
    if (block->kind != BlockKind::Gradients) add("merged copy", bytes, 1, false);
  }
  for (const auto& block : callStrategy("name its blocks", [&] { return strategy.blocks(workers); })) {
    const bool ofReplica = block.place != StrategyBlock::Place::MergedCopy;
    const auto bytes =
        block.numbers > 0 ? block.numbers * static_cast<std::int64_t>(sizeof(double)) : parameters;
    add(fmt::format("the strategy's {}", block.name), bytes, ofReplica ? workers : 1, ofReplica);
  }
}

void MemoryNeed::add(std::string name, std::int64_t bytes, std::int64_t count, bool ofWorker) {
  const auto same = std::ranges::find(parts_, name, &Part::name);
  if (same != parts_.end())
    same->bytes += bytes;
  else
    parts_.push_back({std::move(name), bytes, count, ofWorker});
}

void MemoryNeed::addBatches(const Batch& batch, std::int64_t count) {
  std::int64_t bytes = 0;
  for (const auto* parts : {&batch.features, &batch.labels, &batch.masks})
    for (const auto& part : *parts) bytes += static_cast<std::int64_t>(part.value.bytes());
  add("batches", bytes, count, false);
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
  constexpr std::int64_t kWorthTelling = 1'000'000;
  return bytesOfWorker() < kWorthTelling ? "" : fmt::format(", each at least {}", megabytes(bytesOfWorker()));
}

void MemoryNeed::requireRoom(const std::filesystem::path& root) const {
  constexpr std::size_t kNamed = 3;
  const auto room = memoryRoom(root);
  if (!room || bytes() <= room->left) return;
  auto largest = parts_;
  std::ranges::stable_sort(largest, std::ranges::greater(), &Part::all);
  largest.resize(std::min(kNamed, largest.size()));
  std::vector<std::string> words;
  for (const Part& part : largest)
    words.push_back(part.count == 1
                        ? fmt::format("{} {}", part.name, megabytes(part.bytes))
                        : fmt::format("{} {} x {}", part.name, part.count, megabytes(part.bytes)));
  throw OutOfMemory(fmt::format(
      "{} worker{} need{} at least {} of memory, but of the {} that this process may use (cgroup) {} "
      "are left; most of it: {}; take fewer workers, a smaller model or fewer batches",
      workers_, workers_ == 1 ? "" : "s", workers_ == 1 ? "s" : "", megabytes(bytes()),
      megabytes(room->limit), megabytes(std::max<std::int64_t>(0, room->left)), fmt::join(words, ", ")));
}

std::optional<MemoryNeed> needOnCpu(Model& model, const Strategy& strategy, const Placements& placements) {
  const bool onCpu = std::ranges::all_of(placements.workers, &Device::isCpu, &Placement::device);
  if (!onCpu || model.blocks().empty()) return {};
  return MemoryNeed(model, strategy, static_cast<int>(placements.workers.size()));
}

std::string megabytes(std::int64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace muster
