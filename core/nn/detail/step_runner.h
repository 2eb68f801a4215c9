#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

#include "muster/core/nn/detail/step_lane.h"

namespace muster::detail {

/// What a step does.
enum class StepWork { Gradient, Update };  // Update: the gradient too

/// Runs the steps of one program with batches of one form, through two lanes that take turns: while one step
/// runs, the batch of the next is copied. The first step of each work is run call by call, which is when
/// libraries load and choose; each later one is recorded when its lane first does that work, and launched as
/// a whole from then on. One thread at a time.
class StepRunner {
 public:
  static constexpr std::size_t kLanes = 2;

  /// Enqueues a step from the lane's numbers to its results.
  using Enqueue = std::function<void(StepLane&, StepWork)>;
  /// Reads the results of step `number`, which is done.
  using Settle = std::function<void(std::uint64_t number, const StepLane&, StepWork)>;

  /// @param recordable  false: every step is run call by call.
  StepRunner(const Batch& like, std::size_t outputs, bool recordable, Enqueue enqueue, Settle settle,
             Context& context);
  /// Waits for what is under way.
  ~StepRunner();
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;

  bool fits(const Batch& batch) const { return places_.front().lane.fits(batch); }

  /// Waits until the step before the last is done and settled, and sends the batch.
  /// @return the lane through which the next `run` goes.
  StepLane& begin(const Batch& batch);
  /// Enqueues the step of that lane.
  void run(std::uint64_t number, StepWork work);

  /// Whether step `number` has gone through here and is not settled yet.
  bool underWay(std::uint64_t number) const { return placeOf(number) != nullptr; }
  bool complete(std::uint64_t number) const;
  /// Waits for it and settles it.
  void finish(std::uint64_t number);
  /// Waits for all, in their order.
  void finish();

  /// How many steps were launched from a recording.
  std::int64_t launched() const { return launched_; }

 private:
  struct Place {
    StepLane lane;
    Event done = {};
    std::optional<std::uint64_t> number = {};  // of the step that is under way
    StepWork work = StepWork::Gradient;
    std::array<std::optional<Graph>, 2> graphs = {};  // [StepWork]
  };

  const Place* placeOf(std::uint64_t number) const;
  void settle(Place& place);
  void runCallByCall(Place& place, StepWork work);
  bool record(Place& place, StepWork work);
  void waitAfterFailure() noexcept;

  Context& context_;
  Enqueue enqueue_;
  Settle settle_;
  bool recordable_;
  std::array<bool, 2> ranOnce_ = {};  // [StepWork] call by call
  std::array<Place, kLanes> places_;
  std::size_t current_ = 0;
  std::int64_t launched_ = 0;
};

}  // namespace muster::detail
