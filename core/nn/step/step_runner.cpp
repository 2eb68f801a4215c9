#include "muster/core/nn/step/step_runner.h"

#include <algorithm>

#include "muster/core/base/detail/log_scope.h"
#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/device/detail/side_stream.h"

namespace muster::detail {

StepRunner::StepRunner(const Batch& like, std::size_t outputs, bool recordable, Enqueue enqueue,
                       Finished finished, Context& context, Record recorder)
    : context_(context),
      enqueue_(std::move(enqueue)),
      finished_(std::move(finished)),
      recorder_(std::move(recorder)),
      recordable_(recordable),
      places_{Place{.slot = {like, outputs, context}, .done = Event(context)},
              Place{.slot = {like, outputs, context}, .done = Event(context)}} {}

StepRunner::~StepRunner() {
  try {
    finish();
  } catch (const std::exception& error) {
    logWarning("a step was in flight when its network was destroyed: {}", error.what());
  }
}

StagingSlot& StepRunner::begin(const Batch& batch) {
  current_ = (current_ + 1) % kSlots;
  Place& place = places_[current_];
  finish(place);
  place.slot.send(batch);
  return place.slot;
}

void StepRunner::run(std::uint64_t number, StepWork work) {
  Place& place = places_[current_];
  auto& graph = place.graphs[static_cast<std::size_t>(work)];
  const bool first = !ranOnce_[static_cast<std::size_t>(work)], inOrder = insideSideStreamScope();
  if (inOrder || (!graph && (first || !recordable_ || !record(place, work)))) {
    runCallByCall(place, work);
    // A step in order does not count: it leaves the side stream's handles unused, and a recording must not be
    // their first use.
    if (!inOrder) ranOnce_[static_cast<std::size_t>(work)] = true;
    ++(first ? counts_.first : counts_.unrecorded);
  } else {
    graph->launch();
    ++counts_.launched;
  }
  place.done.record(context_);
  place.number = number;
  place.work = work;
}

void StepRunner::runCallByCall(Place& place, StepWork work) {
  try {
    enqueue_(place.slot, work);
  } catch (...) {
    waitAfterFailure();
    throw;
  }
}

/// Waits for a partly enqueued step, which must not read the slot after the slot is reused.
void StepRunner::waitAfterFailure() noexcept {
  try {
    context_.synchronize();
  } catch (const std::exception& error) {
    logWarning("after a step that failed: {}", error.what());
  }
}

/// @return whether the step was recorded; if not, all later steps run call by call.
bool StepRunner::record(Place& place, StepWork work) {
  const auto refuse = [this](const Error& error) {
    warnOnce(fmt::format("network: steps cannot be recorded on {} and are run call by call: {}",
                         context_.device().toString(), error.what()));
    recordable_ = false;
    return false;
  };
  try {
    place.graphs[static_cast<std::size_t>(work)] =
        recorder_(context_, [this, &place, work] { enqueue_(place.slot, work); });
    return true;
  } catch (const DeviceFailure& error) {
    return refuse(error);
  } catch (const OutOfMemory& error) {  // a graph needs device memory
    return refuse(error);
  }
}

const StepRunner::Place* StepRunner::placeOf(std::uint64_t number) const {
  const auto found = std::ranges::find(places_, number, &Place::number);
  return found == places_.end() ? nullptr : &*found;
}

bool StepRunner::complete(std::uint64_t number) const {
  const Place* place = placeOf(number);
  return !place || place->done.complete();
}

void StepRunner::finish(std::uint64_t number) {
  for (auto& place : places_)
    if (place.number == number) finish(place);
}

void StepRunner::finish() {
  for (std::size_t i = 1; i <= kSlots; ++i) finish(places_[(current_ + i) % kSlots]);
}

void StepRunner::finish(Place& place) {
  if (!place.number) return;
  const std::uint64_t number = *place.number;
  place.number.reset();
  place.done.wait();
  finished_(number, place.slot, place.work);
}

}  // namespace muster::detail
