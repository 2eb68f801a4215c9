#pragma once

#include <cstdint>
#include <vector>

#include "muster/core/nn/network.h"
#include "muster/core/nn/step/batch_passes.h"
#include "muster/core/nn/step/device_copies.h"
#include "muster/core/nn/step/enqueued_steps.h"
#include "muster/core/nn/step/gradient_slices.h"
#include "muster/core/nn/step/manual_pass.h"
#include "muster/core/nn/step/normalisation.h"
#include "muster/core/nn/step/program_cache.h"

namespace muster {

/// A network's plan, state and compiled programs, and what runs them.
struct Network::Impl {
  Impl(Network& network, std::uint64_t networkSeed);

  /// Computes a batch's gradient into the gradients' block, like `Network::gradient` without slices.
  StepTicket gradient(const Batch& batch);
  /// Whether a step enqueues the update, too.
  bool enqueuesUpdates(Network& network) const;

  Context& context;
  std::uint64_t seed;
  bool enqueuesSteps;
  InputDescription description;
  detail::NetworkPlan plan;        // empty until initialised
  std::vector<StateBlock> blocks;  // parameters, gradients, and statistics if there are any
  detail::Normalisation normalisation;
  detail::EnqueuedSteps steps;  // declared before `programs`, whose steps in flight write scores here
  detail::ProgramCache programs;
  detail::DeviceCopies copies;
  detail::GradientSlices slices;
  detail::BatchPasses passes;
  detail::ManualPass manual;
};

}  // namespace muster
