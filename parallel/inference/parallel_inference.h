#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/fields.h"
#include "muster/core/data/batch.h"
#include "muster/core/device/context.h"
#include "muster/core/nn/model.h"

namespace muster {

/// Where and how the calls of many threads are computed.
enum class InferenceMode {
  Sequential,  ///< by the workers, one call at a time: the bits of `Model::output`
  Batched,     ///< by the workers; calls that wait are joined into one batch
  /// On the caller's own thread, with a free replica: the bits of `Model::output`. A caller's next
  /// request may overtake waiting ones, for at most 0.2 ms beyond its current call.
  InPlace,
};

template <>
struct EnumNames<InferenceMode> {
  static constexpr std::array<std::pair<InferenceMode, std::string_view>, 3> kNames{{
      {InferenceMode::Sequential, "sequential"},
      {InferenceMode::Batched, "batched"},
      {InferenceMode::InPlace, "in-place"},
  }};
};

/// What a call does while `queueLimit` others wait.
enum class WhenFull {
  Wait,    ///< it waits, too, until its deadline
  Refuse,  ///< it throws QueueFull
};

/// A call was not answered before its deadline; in `InPlace`, no replica was free before it.
class DeadlineExceeded : public Error {
 public:
  using Error::Error;
};

/// A call was refused, because `queueLimit` others wait.
class QueueFull : public Error {
 public:
  using Error::Error;
};

/// A call was refused, because `shutdown` has been called.
class InferenceShutDown : public Error {
 public:
  using Error::Error;
};

/// Options of ParallelInference.
struct InferenceOptions {
  int workers = 1;  ///< replicas; in `Sequential` and `Batched` each has a thread. 1 to 1024
  InferenceMode mode = InferenceMode::Batched;
  /// `Batched`: how many examples are computed at once, at most. 1 to 65,536.
  std::int64_t batchLimit = 32;
  /// `Batched`: how long the first of the joined calls waits for others, unless their batch is full or the
  /// queue is. By default only calls that arrived while all workers were busy are joined.
  std::chrono::microseconds batchTime{0};
  std::int64_t queueLimit = 64;  ///< calls that wait for a worker
  WhenFull whenFull = WhenFull::Wait;
  /// Features (and masks) of one or more examples, of the shape and type that callers send. With it the model
  /// is compiled in the constructor, for each number of examples that is computed at once; if it has no
  /// features, at the first call that needs that number. Nothing: in `Batched` mode zeros, if the model knows
  /// its features (KnownFeatures; networks do), else no features.
  ///
  /// The constructor computes up to 4.5 times `batchLimit` examples with each replica, and the replica keeps
  /// memory for the activations of as many.
  std::optional<Batch> example = {};
  std::vector<Device> devices = {Device::cpu()};  ///< worker i is on device i mod D
  std::optional<MathMode> mathMode = {};          ///< nothing: each device's default
  int threadsPerWorker = 1;                       ///< that an operation uses on the CPU. 1 to 1024
  bool pinThreads = true;                         ///< `InPlace` never pins: the threads are the callers'

  /// @throws InvalidArgument naming the option.
  void validate() const;
};

/// The answer to a call.
struct Prediction {
  Tensor output;  ///< like that of `Model::output`: [examples, ...] on the CPU, owned by the caller
  std::int64_t modelVersion = 1;
};

/// Answers the calls of many threads with the predictions of one model, computed by several replicas.
///
///     ParallelInference inference(model, {.workers = 2, .batchLimit = 32});
///     const auto [classes, version] = inference.output(image);  // from any number of threads
///     inference.updateModel(retrained);                         // while it serves
///
/// In `Batched` mode a joined batch is padded with zeros to one of at most eight sizes (for the limit 32: 1,
/// 2, 4, 8, 12, 16, 28 and 32), or computed in two such sizes if these have more than an eighth fewer rows
/// (on the CPU only). A call with more examples is computed in parts. The prediction for an example does not
/// depend on other examples. But the order of sums may depend on the batch size, so the last digits may
/// differ from those of `Model::output`, and from call to call. In the other modes they do not.
///
/// The model is copied: it may be trained on or destroyed while this object lives. All members but
/// construction, destruction and moves are thread-safe. A call may be in progress when the destructor begins:
/// it is answered.
class ParallelInference {
 public:
  /// @throws InvalidArgument naming an option that is out of range, or if the model is not initialised;
  ///         TrainingError naming the worker if a replica or a thread could not be made, or if it cannot
  ///         compute `example`.
  explicit ParallelInference(Model& model, InferenceOptions options = {});
  /// Calls `shutdown`.
  ~ParallelInference();
  ParallelInference(ParallelInference&&) noexcept;
  ParallelInference& operator=(ParallelInference&&) noexcept;

  using Clock = std::chrono::steady_clock;
  static constexpr auto kNoDeadline = Clock::time_point::max();

  /// The predictions for features (and masks) of one or more examples, on the CPU. Labels are not read. The
  /// tensors must not change during the call.
  /// @throws InvalidArgument for features that are not of this form, DeadlineExceeded, QueueFull,
  /// InferenceShutDown; what the model throws for these features, in this call alone.
  Prediction output(const Batch& batch, Clock::time_point deadline = kNoDeadline);
  /// As above, for a model that reads one tensor: float32 [N, ...], or what else its first layer reads.
  Prediction output(const Tensor& features, Clock::time_point deadline = kNoDeadline);

  /// Serves the state of another model of the same architecture from now on: copies its parameters and
  /// statistics. Calls that begin after this one has returned get the new version; those in progress are
  /// computed by one of the two versions, never by a mixture. Waits for no call.
  /// @return the number of the version; the constructor's is 1.
  /// @throws InvalidArgument naming the block that differs in shape, or the first layer of another type or with
  ///         another option that counts in predictions; the old version stays in use.
  std::int64_t updateModel(Model& model);
  std::int64_t modelVersion() const;

  /// Calls that wait: for a worker, a replica, or room in the queue.
  std::int64_t waitingCalls() const;

  /// Refuses new calls and those that wait to enter the queue, answers all others, and ends the workers.
  void shutdown();

  /// The effective plan in words: workers, devices, pinning, how calls are joined.
  std::string plan() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
