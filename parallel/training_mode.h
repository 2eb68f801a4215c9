#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "muster/core/base/fields.h"

namespace muster {

/// How the workers of a ParallelWrapper are merged.
enum class TrainingMode {
  /// Each worker takes whole steps on its replica; every `averagingFrequency` iterations the replicas are
  /// replaced by their mean. Source: McDonald et al. 2010; Stich 2019 (local SGD).
  Averaging,
  /// Every iteration the workers' gradients are averaged, weighted by the loss normaliser, and every replica
  /// applies the same update. This equals one worker on the joined batch, up to rounding, with any updater.
  /// Averaging precedes clipping.
  SynchronousGradients,
  /// Every iteration each worker sends the large elements of its update, as plus or minus a threshold, and
  /// keeps the rest for later. It sends at most a sixteenth of the parameters' bytes, and at a
  /// resynchronisation the rest and the updater's state. Source: Strom 2015.
  SharedGradients
};

/// As programs and files call them.
template <>
struct EnumNames<TrainingMode> {
  static constexpr std::array<std::pair<TrainingMode, std::string_view>, 3> kNames{{
      {TrainingMode::Averaging, "averaging"},
      {TrainingMode::SynchronousGradients, "synchronous"},
      {TrainingMode::SharedGradients, "shared"},
  }};
};

}  // namespace muster
