#include "muster/parallel/averaging/periodic_averaging.h"

#include "muster/core/base/error.h"

namespace muster {

PeriodicAveraging::PeriodicAveraging(std::int64_t frequency) : frequency_(frequency) {
  require(frequency >= 1, "averagingFrequency must be at least 1, got {}", frequency);
}

std::int64_t PeriodicAveraging::iterationsUntilMeeting(const MeetingInfo&) {
  return frequency_;
}

void PeriodicAveraging::meet(int participant, Collective& collective, std::span<const double> weights,
                             Context& context) {
  for (const auto& block : collective.blocks()) collective.merge(participant, block, weights, context);
}

std::string PeriodicAveraging::describe() const {
  return frequency_ == 1 ? "averaging every iteration"
                         : fmt::format("averaging every {} iterations", frequency_);
}

}  // namespace muster
