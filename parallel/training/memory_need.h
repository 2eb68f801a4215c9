#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "muster/core/data/batch.h"
#include "muster/core/device/memory_room.h"
#include "muster/core/nn/model.h"
#include "muster/parallel/strategies/strategy.h"
#include "muster/parallel/training/node_place.h"

namespace muster {

/// What each worker has in host memory.
struct ReplicasOnHost {
  bool onCpu = true;      ///< the replica and its step
  bool mirrored = false;  ///< a mirror of it (HostMirrors)
};

/// A lower bound of the host memory that workers need.
class MemoryNeed {
 public:
  /// @param model  must have parameters. @param groups  see HostExchange.
  MemoryNeed(Model& model, const Strategy& strategy, const NodePlace& place, int groups = 1,
             const ReplicasOnHost& replicas = {});
  /// Adds batches that circulate, as large as this one.
  void addBatches(const Batch& batch, std::int64_t count);
  /// Adds the memory of each worker's step (or output, if not `training`) for batches of this size, if the
  /// model can compute it, and that of the libraries that compute it.
  void addStep(Model& model, const Batch& batch, bool training, const ContextOptions& context);

  std::int64_t bytesOfWorker() const;
  std::int64_t bytes() const;
  /// As in ", each at least 12.3 MB", on GPUs ", each at least 12.3 MB of host memory"; "" below a megabyte.
  std::string describe() const;
  /// Whether the steps, which take long to measure, could exceed the limit. An estimate: they take up to 64
  /// times as much as what was added, and the libraries' part. Call it after addBatches().
  bool stepsMayExceed(const MemoryRoom& room) const;
  /// Throws if the need exceeds the process's limit on memory, before the kernel kills the process.
  /// @param root  see memoryRoom.
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
  void addStrategy(const Strategy& strategy, const StrategyTraits& traits, const NodePlace& place, int groups,
                   std::int64_t parameters, DType parameterType);

  std::int64_t workers_;
  bool onCpu_;
  std::vector<Part> parts_;
};

/// Bytes of the tensors of a batch.
std::int64_t bytesOf(const Batch& batch);

/// As in "12.3 MB".
std::string megabytes(std::int64_t bytes);

}  // namespace muster
