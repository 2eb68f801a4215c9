#pragma once

#include <condition_variable>
#include <random>

#include "muster/core/data/data_set_iterator.h"
#include "tests/support/standard.h"

namespace muster::test {

/// Examples of one batch: `values` [N, width], and a mask [N] or none.
struct ToyBatch {
  std::vector<float> values;
  std::vector<float> mask = {};
};

/// Gives the same list of batches in every epoch. Its hooks, called on the reader's thread, make it slow,
/// blocking or failing.
class ToyIterator : public DataSetIterator {
 public:
  explicit ToyIterator(std::vector<ToyBatch> batches, std::int64_t width = 1)
      : batches_(std::move(batches)), width_(width) {}
  /// Batches of one example each, of width 1.
  static ToyIterator ofValues(const std::vector<float>& values);

  void reset(std::int64_t epoch) override;
  bool next(Batch& batch) override;
  std::optional<std::int64_t> examples() const override { return knownExamples; }
  std::optional<std::int64_t> batchSize() const override { return knownBatchSize; }

  std::function<void(std::int64_t epoch)> onReset;
  std::function<void(std::int64_t epoch, std::int64_t batch)>
      onNext;  ///< also called before the end is reported
  std::optional<std::int64_t> knownExamples, knownBatchSize;
  std::vector<std::int64_t> resets;  ///< epochs of its resets; do not read during training

 protected:
  /// Moves past up to `batches` batches without reading them. @return the number of examples in them.
  std::int64_t moveOn(std::int64_t batches);

 private:
  std::vector<ToyBatch> batches_;
  std::int64_t width_;
  std::int64_t epoch_ = 0;
  std::size_t next_ = 0;
};

/// `count` random batches of `width` values, of `examples` examples each, or 1 to `examples` if `ragged`.
std::vector<ToyBatch> randomBatches(std::uint64_t seed, int count, std::int64_t examples,
                                    std::int64_t width = 1, bool ragged = false);
/// Joins each `group` consecutive batches into one.
std::vector<ToyBatch> joined(const std::vector<ToyBatch>& batches, std::size_t group);

/// Sleeps a random time up to `longest` at each call. Thread-safe.
class RandomDelays {
 public:
  RandomDelays(std::uint64_t seed, std::chrono::microseconds longest) : random_(seed), longest_(longest) {}
  void operator()();

 private:
  std::mutex mutex_;
  std::mt19937_64 random_;  // guarded by mutex_
  std::chrono::microseconds longest_;
};

/// Blocks threads until it is opened. Thread-safe.
class Gate {
 public:
  /// Waits until the gate is open.
  void pass();
  void open();
  /// Waits until a thread is blocked.
  void awaitVisitor();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;     // guarded by mutex_
  bool visited_ = false;  // guarded by mutex_
};

}  // namespace muster::test
