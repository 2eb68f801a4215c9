#include "muster/core/comparison/tuned_arm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace muster {

bool TunedArm::failed() const {
  return std::ranges::none_of(losses, [](double loss) { return std::isfinite(loss); });
}

TunedArm chooseTuning(std::string arm, std::vector<TuningChoice> choices,
                      std::span<const RunRecord* const> runs) {
  TunedArm tuned{.arm = std::move(arm), .choices = std::move(choices), .losses = {}};
  for (const auto* run : runs) {
    const double loss = run->failed() ? std::numeric_limits<double>::infinity() : run->end().loss;
    tuned.losses.push_back(std::isfinite(loss) ? loss : std::numeric_limits<double>::infinity());
    if (!run->points.empty()) tuned.seconds += run->end().seconds;
  }
  tuned.best = static_cast<std::size_t>(std::ranges::min_element(tuned.losses) - tuned.losses.begin());
  return tuned;
}

}  // namespace muster
