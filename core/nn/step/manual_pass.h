#pragma once

#include <cstdint>

#include "muster/core/nn/model.h"
#include "muster/core/nn/step/device_copies.h"
#include "muster/core/nn/step/program_cache.h"

namespace muster::detail {

/// Forward and backward passes called by the user, without a loss, of a network with one input and one
/// output.
class ManualPass {
 public:
  /// @param plan, programs, copies  must outlive it; used only during calls.
  ManualPass(std::uint64_t seed, const NetworkPlan& plan, ProgramCache& programs, DeviceCopies& copies,
             Context& context)
      : seed_(seed), plan_(plan), programs_(programs), copies_(copies), context_(context) {}

  /// @throws InvalidArgument unless the network is laid out and has one input, of this shape, and one output.
  void check(const Tensor& input) const;
  /// See Network::forward; `input` was checked.
  void forward(const Tensor& input, Tensor& output, const ForwardPass& pass);
  /// See Network::backward.
  void backward(const Tensor& gradOutput, Tensor* gradInput);

 private:
  std::uint64_t seed_;
  const NetworkPlan& plan_;
  ProgramCache& programs_;
  DeviceCopies& copies_;
  Context& context_;
  std::uint64_t use_ = 0;  // number of forward's use of its program; its activations last until the next use
  StepInfo info_;
};

}  // namespace muster::detail
