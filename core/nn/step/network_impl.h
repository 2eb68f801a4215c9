#pragma once

#include <cstdint>
#include <vector>

#include "muster/core/nn/network.h"
#include "muster/core/nn/step/device_copies.h"
#include "muster/core/nn/step/enqueued_steps.h"
#include "muster/core/nn/step/gradient_slices.h"
#include "muster/core/nn/step/program_cache.h"

namespace muster {

/// A network's plan, state and compiled programs. Functions of Network are defined by subject in network.cpp,
/// network_training.cpp, network_output.cpp, network_passes.cpp
/// and network_normalisation.cpp.
struct Network::Impl {
  Impl(Network& network, std::uint64_t networkSeed);

  /// The batch on the network's device, with the values of all tensors instead of row indices.
  const Batch& there(const Batch& batch);
  /// Runs a batch on the network's device forward. @return the program that holds the result.
  detail::NetworkProgram& run(const Batch& batch, bool training);

  /// Computes a batch's gradient into the gradients' block, like `Network::gradient`.
  StepTicket gradient(const Batch& batch);

  /// Fits all Normalise layers, see network_normalisation.cpp.
  void fitNormalisation(Network& network, DataSetIterator& data);
  /// @throws InvalidArgument naming a Normalise that was not fitted.
  void requireFitted();
  void forgetNormalisation() { normalisationKnown_ = false; }

  Context& context;
  std::uint64_t seed;
  bool enqueuesSteps;
  InputDescription description;
  detail::NetworkPlan plan;        // empty until initialised
  std::vector<StateBlock> blocks;  // parameters, gradients, and statistics if there are any
  detail::EnqueuedSteps steps;     // declared before `programs`, whose steps in flight write scores here
  detail::ProgramCache programs;
  detail::DeviceCopies copies;
  detail::GradientSlices slices;

  /// The number of `forward`'s use of its program; `backward` reads the activations until the next use.
  std::uint64_t forwardUse = 0;
  StepInfo forwardInfo;

 private:
  bool normalisationKnown_ = false;      // on a GPU: all Normalise layers were seen fitted
  std::vector<const Tensor*> features_;  // [input] of the current batch
  Batch gathered_;                       // on the CPU, of a batch of row indices
};

}  // namespace muster
