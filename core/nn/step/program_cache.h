#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "muster/core/nn/compile/network_program.h"
#include "muster/core/nn/step/step_runner.h"

namespace muster::detail {

/// A network's programs for recent batch sizes, and the runners of their steps. The least recently used
/// program is removed.
class ProgramCache {
 public:
  static constexpr std::size_t kPrograms = 8;
  /// Number of batch forms (combinations of masks and element types) per program.
  static constexpr std::size_t kForms = 4;

  struct Entry {
    BatchSize batch;
    bool training;
    std::uint64_t use = 0;  ///< number of the last use, from 1
    std::unique_ptr<NetworkProgram> program;
    std::vector<std::unique_ptr<StepRunner>> runners = {};  ///< most recently used last
    std::size_t removed = 0;                                ///< number of runners
  };

  /// The program for this size, compiled if necessary, for another pass. The reference is valid until the
  /// next call.
  Entry& get(const NetworkPlan& plan, const BatchSize& batch, bool training, Context& context);
  /// The program whose last use is `use`; nullptr if it has been used since or was removed.
  NetworkProgram* heldSince(std::uint64_t use) const;

  /// The runner for batches like this one; nullptr if there is none yet.
  static StepRunner* find(Entry& entry, const Batch& batch);
  static StepRunner& add(Entry& entry, std::unique_ptr<StepRunner> runner);

  /// Whether step `number` of any program is done.
  bool complete(std::uint64_t number) const;
  /// Waits for step `number` and reads its results.
  void finish(std::uint64_t number);
  /// Finishes all steps in flight.
  void finish();

  /// Number of steps of the programs that are kept.
  StepCounts counts() const;
  /// Bytes of activations and gradients.
  std::size_t bytes() const;

 private:
  void noteRemoval(const BatchSize& batch);

  std::vector<Entry> entries_;
  std::vector<BatchSize> removed_;  // batch sizes whose recorded steps were removed, each once
  std::uint64_t uses_ = 0;
};

}  // namespace muster::detail
