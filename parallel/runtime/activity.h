#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace muster {

/// What somebody is doing right now, for the report of a stall. Written by its owner, read by anyone.
class Activity {
 public:
  enum class Kind {
    Idle,
    Replicating,
    WaitingForData,
    WaitingForRoom,
    InIterator,
    Computing,
    InListener,
    Merging,
    WaitingForWorkers,
    InExchange  ///< waiting for the other workers in the middle of a step
  };

  /// @param batch  in its epoch, from 0; -1: none.
  void set(Kind kind, std::int64_t batch = -1);

  Kind kind() const { return kind_; }
  /// At work, not waiting for somebody else.
  bool busy() const;
  std::chrono::nanoseconds elapsed() const;
  /// As in "computing (batch 57) for 12 s", batches counted from 1; empty when idle.
  std::string describe() const;

 private:
  std::atomic<Kind> kind_{Kind::Idle};
  std::atomic<std::int64_t> batch_{-1};
  std::atomic<std::chrono::steady_clock::rep> since_{0};
};

}  // namespace muster
