#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "muster/core/data/batch.h"

namespace muster {

/// A step's information for a compiled module, other than tensors.
struct StepInfo {
  BatchStamp stamp;
  std::uint64_t seed = 0;
  bool training = true;            ///< dropout acts, statistics move; a backward pass may follow either way
  bool replaceStatistics = false;  ///< in training: running statistics become the batch's
  /// The real time steps of sequences [N, T, F]: float32 [N, T] of 1 and 0. nullptr: all are real.
  const Tensor* sequenceMask = nullptr;
  /// int64 [2] on the network's device: the epoch and first example of `stamp`. nullptr: read `stamp`.
  const Tensor* position = nullptr;
  /// The normaliser of the batch's loss. Only known in the backward pass of programs that are not recordable;
  /// else 0.
  double lossWeight = 0;
};

/// An input of a module, with the batch as first dimension.
struct ModuleInput {
  Shape shape;
  Layout layout = Layout::RowMajor;  ///< of the given input; another layout costs a reorder
};

/// What a module is compiled for. The tensors' memory does not move during the program's life.
struct ModuleBinding {
  std::string name;                      ///< of the layer, for example "conv1"
  std::vector<ModuleInput> inputs = {};  ///< at least one
  bool training = true;                  ///< false: backward will not be called
  std::vector<Tensor> parameters = {};   ///< in the order of `parameters()`
  std::vector<Tensor> gradients = {};    ///< in the order of `parameters()`
  std::vector<Tensor> statistics = {};   ///< in the order of `statistics()`

  // For a module with one input.
  const Shape& input() const { return inputs.front().shape; }
  Layout offered() const { return inputs.front().layout; }
};

/// The activations that a backward pass reads. The memory of others is reused after the forward pass.
struct BackwardReads {
  bool input = true, output = true;
};

/// A module compiled for one batch shape and one context: all is planned and allocated, a run allocates
/// nothing.
class VertexProgram {
 public:
  virtual ~VertexProgram() = default;
  /// The layout that it needs of every input.
  virtual Layout inputLayout() const { return Layout::RowMajor; }
  virtual Layout outputLayout() const { return Layout::RowMajor; }
  /// The output is the memory of the single input in another shape: the program is never run.
  virtual bool aliasesInput() const { return false; }
  /// The gradient of each input is the gradient of the output, as `backwardAll` leaves it in `gradY`: the
  /// network passes it on, and `gradX` is empty.
  virtual bool passesGradient() const { return false; }
  /// Whether the backward pass may write `gradX` over `gradY`. Asked only if the program has one input, of
  /// the output's layout.
  virtual bool gradientInPlace() const { return false; }
  virtual BackwardReads backwardReads() const { return {}; }
  /// Whether the backward pass uses `Context::onSideStream`. The network then keeps the inputs and the output
  /// gradient unchanged until its whole backward pass is done.
  virtual bool readsGradientLate() const { return false; }
  /// Whether a step with this program may be recorded once and launched many times on a GPU (a CUDA graph).
  /// If true, both directions only enqueue the same operations on the same tensors each time: they wait for
  /// nothing, allocate nothing, read no result, and read values that change between steps only from
  /// `position` and `sequenceMask`'s memory. A network with one program that returns false runs all its steps
  /// call by call.
  virtual bool recordable() const { return false; }
  virtual void forwardAll(std::span<const Tensor> x, Tensor& y, const StepInfo& info) = 0;
  /// Overwrites the parameters' gradients and each of `gradX`; undefined ones are not needed. May overwrite
  /// `gradY`.
  virtual void backwardAll(std::span<const Tensor> x, const Tensor& y, Tensor& gradY, std::span<Tensor> gradX,
                           const StepInfo& info) = 0;
};

/// A program with one input.
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
