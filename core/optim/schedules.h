#pragma once

#include <tuple>

#include "muster/core/optim/schedule.h"

namespace muster {

/// All schedules of the library; files can name each.
using LibrarySchedules =
    std::tuple<FixedSchedule, StepSchedule, ExponentialSchedule, CosineSchedule, WarmUpSchedule>;

}  // namespace muster
