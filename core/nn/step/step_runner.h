#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "muster/core/nn/step/staging_slot.h"

namespace muster::detail {

/// What a step does.
enum class StepWork { Gradient, Update };  // Update includes the gradient

/// Number of steps by how they ran.
struct StepCounts {
  std::int64_t launched = 0;    ///< as graphs
  std::int64_t unrecorded = 0;  ///< call by call, although a graph was expected
  std::int64_t first = 0;       ///< call by call, as a runner's first step of a kind of work

  std::int64_t all() const { return launched + unrecorded + first; }
  /// Whether graphs are used: none was missing, and at least nine steps in ten were launched as a graph. (If
  /// every step creates a new runner, no graph is missing and none is launched.)
  bool recorded() const { return unrecorded == 0 && launched > 0 && 10 * launched >= 9 * all(); }
  StepCounts& operator+=(const StepCounts& other) {
    launched += other.launched;
    unrecorded += other.unrecorded;
    first += other.first;
    return *this;
  }
};

/// Runs the steps of one program with batches of one form. Two staging slots take turns: while one step runs,
/// the batch of the next is copied. The first step of each kind of work is run call by call, so that
/// libraries load and choose algorithms. A slot records its next step of that kind as a graph and launches
/// the graph from then on. A step inside another `SideStreamScope` also runs call by call: it does not use
/// the side stream, so a recording would differ from other steps. One thread at a time.
class StepRunner {
 public:
  static constexpr std::size_t kSlots = 2;

  /// Enqueues a step from the slot's numbers to its results.
  using Enqueue = std::function<void(StagingSlot&, StepWork)>;
  /// Called when step `number` is done, to read its results.
  using Finished = std::function<void(std::uint64_t number, const StagingSlot&, StepWork)>;
  /// Records work as a graph. @throws as Graph.
  using Record = std::function<Graph(Context&, std::function<void()> work)>;

  /// @param recordable  false: every step is run call by call.
  /// @param recorder    records a step; replaced by tests.
  StepRunner(
      const Batch& like, std::size_t outputs, bool recordable, Enqueue enqueue, Finished finished,
      Context& context, Record recorder = [](Context& where, std::function<void()> work) {
        return Graph(where, std::move(work));
      });
  /// Waits for the steps in flight.
  ~StepRunner();
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;

  bool fits(const Batch& batch) const { return places_.front().slot.fits(batch); }

  /// Finishes the step before the last, and sends the batch.
  /// @return the slot that the next `run` uses.
  StagingSlot& begin(const Batch& batch);
  /// Enqueues the step of that slot.
  void run(std::uint64_t number, StepWork work);

  /// Whether step `number` is done on the device. Also true of a step that was never enqueued here or is
  /// finished already.
  bool complete(std::uint64_t number) const;
  /// Waits for step `number` and reads its results.
  void finish(std::uint64_t number);
  /// Finishes all steps, in order.
  void finish();

  StepCounts counts() const { return counts_; }

 private:
  struct Place {
    StagingSlot slot;
    Event done = {};
    std::optional<std::uint64_t> number = {};  // of the step in flight
    StepWork work = StepWork::Gradient;
    std::array<std::optional<Graph>, 2> graphs = {};  // [StepWork]
  };

  const Place* placeOf(std::uint64_t number) const;
  void finish(Place& place);
  void runCallByCall(Place& place, StepWork work);
  bool record(Place& place, StepWork work);
  void waitAfterFailure() noexcept;

  Context& context_;
  Enqueue enqueue_;
  Finished finished_;
  Record recorder_;
  bool recordable_;
  std::array<bool, 2> ranOnce_ = {};  // [StepWork]
  std::array<Place, kSlots> places_;
  std::size_t current_ = 0;
  StepCounts counts_;
};

}  // namespace muster::detail
