#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "muster/core/nn/detail/network_program.h"
#include "muster/core/nn/detail/step_runner.h"

namespace muster::detail {

/// A network's programs for batch sizes that come again, and the steps that run on them. What was used least
/// recently makes room.
class ProgramCache {
 public:
  static constexpr std::size_t kPrograms = 8;
  /// Forms of batches for each of them: other masks or element types.
  static constexpr std::size_t kForms = 4;

  struct Entry {
    std::int64_t batch;
    bool training;
    std::uint64_t use = 0;  ///< the last one's number, from 1
    std::unique_ptr<NetworkProgram> program;
    std::vector<std::unique_ptr<StepRunner>> runners = {};  ///< the most recently used last
  };

  /// The program for this size, made where there is none; it will hold another pass. The reference is good
  /// until the next call.
  Entry& get(const NetworkPlan& plan, std::int64_t batch, bool training, Context& context);
  /// The program that use `use` was the last of; nullptr where it has been used since, or has made room.
  NetworkProgram* heldSince(std::uint64_t use) const;

  /// The steps of an entry for batches like this one; nullptr where there are none yet.
  static StepRunner* find(Entry& entry, const Batch& batch);
  static StepRunner& add(Entry& entry, std::unique_ptr<StepRunner> runner);

  /// Whether step `number`, wherever it went, is done.
  bool complete(std::uint64_t number) const;
  /// Waits for step `number` and reads its results.
  void finish(std::uint64_t number);
  /// Waits for all steps that are under way.
  void finish();

  /// How many steps were launched from a recording.
  std::int64_t launched() const;
  /// Of activations and gradients.
  std::size_t bytes() const;

 private:
  std::vector<Entry> entries_;
  std::uint64_t uses_ = 0;
};

}  // namespace muster::detail
