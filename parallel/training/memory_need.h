#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "muster/core/data/batch.h"
#include "muster/core/nn/model.h"
#include "muster/parallel/runtime/placement.h"
#include "muster/parallel/strategies/strategy.h"

namespace muster {

/// What workers on the CPU take of its memory, at least: what a step needs beside the model's state
/// (activations) is not known before one.
class MemoryNeed {
 public:
  /// @param model  with parameters; of one without nothing is known yet.
  MemoryNeed(Model& model, const Strategy& strategy, int workers);
  /// Adds batches that circulate, as large as this one.
  void addBatches(const Batch& batch, std::int64_t count);

  std::int64_t bytesOfWorker() const;
  std::int64_t bytes() const;
  /// As in ", each at least 12.3 MB"; "" below a megabyte, which is not worth a word.
  std::string describe() const;
  /// Refuses what the process's limit on memory leaves no room for, before the kernel ends the process.
  /// @param root  as for memoryRoom.
  /// @throws OutOfMemory naming the largest parts.
  void requireRoom(const std::filesystem::path& root) const;

 private:
  struct Part {
    std::string name;
    std::int64_t bytes = 0;  // of one
    std::int64_t count = 1;
    bool ofWorker = false;  // each worker has one
    std::int64_t all() const { return bytes * count; }
  };
  void add(std::string name, std::int64_t bytes, std::int64_t count, bool ofWorker);

  std::int64_t workers_;
  std::vector<Part> parts_;
};

/// Nothing for a model that has no parameters yet, and for workers whose replicas are on GPUs.
std::optional<MemoryNeed> needOnCpu(Model& model, const Strategy& strategy, const Placements& placements);

/// As in "12.3 MB".
std::string megabytes(std::int64_t bytes);

}  // namespace muster
