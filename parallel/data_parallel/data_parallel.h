#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "muster/core/nn/model.h"

namespace muster {

struct DataParallelOptions {
  int threadsPerReplica = 1;  ///< that one replica's operations use on the CPU; 1 to 1024
  bool pinThreads = true;     ///< pin each replica on the CPU to cores of its own, where there are enough
  /// How replicas on GPUs multiply float32 numbers; parameters and gradients stay float32. Nothing: TF32
  /// where a GPU has it. The CPU has fp32 alone.
  std::optional<MathMode> mathMode = {};
  /// Called in each replica's thread, with the replica's index, before anything else is made there.
  std::function<void(int)> init = {};
};

/// What one replica had in the last `forward`.
struct ReplicaShapes {
  int replica = 0;
  Device device;
  Shape input, output;
};

/// Runs one model on several devices at once, forward and backward, by hand: without a loss, an updater or
/// an iterator. The input is cut along a dimension, replica r computes part r on a thread of its own, and the
/// results are put together again, as if the model alone had computed the whole.
///
///     DataParallel parallel(model, {Device::cpu(), Device::cpu()});
///     parallel.zeroGradients();
///     const Tensor output = parallel.forward(input);        // [N, ...]
///     const Tensor gradOutput = ...;                        // d loss / d output, [N, ...]
///     const Tensor gradInput = parallel.backward(gradOutput);
///     parallel.updateParameters(0.1);
///
/// **The user's model holds the truth**: the parameters, and the sum of all replicas' gradients. It is not a
/// replica itself; each replica is a copy, on its own device and thread, and takes the model's parameters
/// before the next `forward` after they have changed through `updateParameters`. Whoever changes them
/// otherwise (`model.update(...)` with an updater, a file) calls `syncParameters`. To save what was trained,
/// save the model.
///
/// **Gradients add up.** Each `backward` adds the replicas' gradients, in their order, to what the model's
/// gradient block holds; after two calls it holds the sum of both. `zeroGradients` begins anew. They are sums
/// over the whole input: of a loss that is a mean over N examples, `gradOutput` carries the 1/N.
///
/// A size n along the dimension is dealt to k replicas in order; the first n mod k get one more. Where n < k
/// only n replicas run. Any element type that the model takes; tensors are row-major, on the CPU, wherever
/// the replicas compute.
///
/// Random streams (dropout) read the number of the pass, counted here over training, and an example's
/// position in the whole input, so they do not depend on the number of replicas. Statistics (running means)
/// are those of replica 0, as in PyTorch. A layer that couples the examples of a batch sees those of its part
/// only, unless it is `synchronised` (BatchNorm): then replicas wait for each other in it, and compute what
/// the model alone would.
///
/// The same calls give the same bits on one CPU model, however the threads are scheduled. Used by one thread
/// at a time. The model must outlive it, and is not to be touched during a call.
///
/// Source: Torch's cunn DataParallelTable; PyTorch's DataParallel.
class DataParallel {
 public:
  /// Starts a thread for each device, which may be named several times: so many replicas share it. The
  /// replicas themselves are made by the first `forward`.
  ///
  /// @param dim  along which inputs, outputs and their gradients are cut, from 0.
  /// @throws InvalidArgument where there are no devices, an option is out of range, or a device has not the
  ///         math mode; TrainingError naming the replica and device where one cannot be started.
  DataParallel(Model& model, const std::vector<Device>& devices, int dim = 0,
               const DataParallelOptions& options = {});
  ~DataParallel();
  DataParallel(DataParallel&&) noexcept;
  DataParallel& operator=(DataParallel&&) noexcept;

  /// What the model computes for `input`. A model whose shapes are still open takes them from the first one.
  /// @throws InvalidArgument for an input without that dimension or empty along it, or outputs that do not
  ///         fit together; TrainingError naming the replica and device that failed (the first, where there
  ///         are several) when the others have finished. This can be used again afterwards.
  Tensor forward(const Tensor& input);
  /// The same into `output`, which is resized and keeps its memory.
  void forward(const Tensor& input, Tensor& output);

  /// Adds to the gradients, given `gradOutput` = d loss / d output of the last `forward`, in training or
  /// evaluation. May be called again for the same pass. @return d loss / d input.
  /// @throws InvalidArgument without such a `forward`, or for another shape than its output's; TrainingError
  ///         as `forward` does. The gradients are then as they were.
  Tensor backward(const Tensor& gradOutput);
  /// The same into `gradInput`, which is resized; null: it is not computed, which saves the time.
  void backward(const Tensor& gradOutput, Tensor* gradInput);

  /// Sets the model's gradients to zero.
  void zeroGradients();
  /// w -= learningRate * g for the model's parameters, segment by segment: scaled by its learning-rate scale,
  /// not at all where it is frozen. Neither regularisation nor clipping: these are the updater's.
  /// @throws InvalidArgument unless the learning rate is finite, or before the model has parameters.
  void updateParameters(double learningRate);
  /// Copies the model's parameters and statistics to all replicas now. Without effect before they are made.
  void syncParameters();

  /// From the next `forward` on: dropout acts and statistics move. So it begins.
  void training();
  /// From the next `forward` on: they do not.
  void evaluate();

  /// The replicas that took part in the last `forward` and their shapes; none where it failed.
  std::vector<ReplicaShapes> shapes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
