#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "muster/core/data/batch.h"

namespace muster {

/// What a compiled module reads in a step beside its tensors.
struct StepInfo {
  BatchStamp stamp;
  std::uint64_t seed = 0;
  bool training = true;  ///< dropout acts, statistics move; a backward pass may follow either way
  /// Which time steps of sequences [N, T, F] are real: float32 [N, T] of 1 and 0. nullptr: all are.
  const Tensor* sequenceMask = nullptr;
  /// int64 [2] where the network computes: the epoch and the first example's position of `stamp`. nullptr:
  /// the stamp is to be read.
  const Tensor* position = nullptr;
  /// Of the batch's loss: its normaliser. Known in the backward pass only, and there only to programs that
  /// are not recordable; else 0.
  double lossWeight = 0;
};

/// An input of a module, with the batch as first dimension.
struct ModuleInput {
  Shape shape;
  Layout layout = Layout::RowMajor;  ///< as it comes; another one costs a reorder
};

/// What a module is compiled for. Tensors stay where they are for the program's life.
struct ModuleBinding {
  std::string name;                      ///< of the layer, as in "conv1"
  std::vector<ModuleInput> inputs = {};  ///< at least one
  bool training = true;                  ///< false: backward will not be called
  std::vector<Tensor> parameters = {};   ///< in the order of `parameters()`
  std::vector<Tensor> gradients = {};    ///< likewise
  std::vector<Tensor> statistics = {};   ///< in the order of `statistics()`

  // Of a module with one input.
  const Shape& input() const { return inputs.front().shape; }
  Layout offered() const { return inputs.front().layout; }
};

/// Which activations a backward pass reads beside the gradients: the memory of others is used again as soon
/// as the forward pass is done with them.
struct BackwardReads {
  bool input = true, output = true;
};

/// A module compiled for one batch shape and one context: everything is planned and allocated, running it
/// allocates nothing.
class VertexProgram {
 public:
  virtual ~VertexProgram() = default;
  /// In which every input is wanted.
  virtual Layout inputLayout() const { return Layout::RowMajor; }
  virtual Layout outputLayout() const { return Layout::RowMajor; }
  /// The output is the one input's memory in another shape: the program is never run.
  virtual bool aliasesInput() const { return false; }
  /// The derivative by each input is the one by the output, as `backwardAll` leaves it in `gradY`: it is
  /// handed on by whoever runs the program, and `gradX` is empty.
  virtual bool passesGradient() const { return false; }
  virtual BackwardReads backwardReads() const { return {}; }
  /// Whether the backward pass uses `Context::onSideStream`. The network then keeps the inputs and the output
  /// gradient unchanged until its whole backward pass is done.
  virtual bool readsGradientLate() const { return false; }
  /// Whether a step with this program may be recorded once and then run again and again on a GPU without a
  /// call of it (a CUDA graph). True promises that both directions do no more than enqueue the same
  /// operations on the same tensors each time: they wait for nothing, allocate nothing, read no result, and
  /// know what changes from step to step from `position` and the memory of `sequenceMask` alone. A network
  /// with one program that says no runs all its steps call by call.
  virtual bool recordable() const { return false; }
  virtual void forwardAll(std::span<const Tensor> x, Tensor& y, const StepInfo& info) = 0;
  /// Writes (not adds) the parameters' gradients and each of `gradX`, which is undefined where nobody needs
  /// it. `gradY` may be overwritten.
  virtual void backwardAll(std::span<const Tensor> x, const Tensor& y, Tensor& gradY, std::span<Tensor> gradX,
                           const StepInfo& info) = 0;
};

/// The same of a module with one input.
class ModuleProgram : public VertexProgram {
 public:
  virtual void forward(const Tensor& x, Tensor& y, const StepInfo& info) = 0;
  virtual void backward(const Tensor& x, const Tensor& y, Tensor& gradY, Tensor& gradX,
                        const StepInfo& info) = 0;

  void forwardAll(std::span<const Tensor> x, Tensor& y, const StepInfo& info) final {
    forward(x.front(), y, info);
  }
  void backwardAll(std::span<const Tensor> x, const Tensor& y, Tensor& gradY, std::span<Tensor> gradX,
                   const StepInfo& info) final {
    backward(x.front(), y, gradY, gradX.front(), info);
  }
};

}  // namespace muster
