#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "muster/core/nn/model.h"

namespace muster {

/// Options of DataParallel.
struct DataParallelOptions {
  int threadsPerReplica = 1;  ///< used by one replica's operations on the CPU; 1 to 1024
  bool pinThreads = true;     ///< pin each replica on the CPU to cores of its own, if there are enough
  /// How replicas multiply float32 numbers; parameters and gradients stay float32. Default: TF32 if a GPU has
  /// it, else fp32. A CPU may have fp32 and bf16 (`whyNoMathMode`).
  std::optional<MathMode> mathMode = {};
  /// Called on each replica's thread, with the replica's index, before anything else is made there.
  std::function<void(int)> init = {};
};

/// The shapes of one replica in the last `forward`.
struct ReplicaShapes {
  int replica = 0;
  Device device;
  Shape input, output;
};

/// Runs one model on several devices at once, forward and backward, for training loops of your own: replica r
/// computes part r of the input on its own thread, and the outputs are joined, as if the model alone had
/// computed all of it. Loops, statistics and random numbers: examples/docs/loops.md.
///
/// The user's model holds the result: the parameters, and the sum of all replicas' gradients over the whole
/// input, which each `backward` adds to until `zeroGradients`. If you change the parameters otherwise than by
/// `updateParameters` (an updater, a file), call `syncParameters`.
///
/// A dimension of size n is split over k replicas in order: each gets n / k, the first n mod k one more; of
/// fewer than k, only n replicas run. Tensors have any element type that the model accepts; they are
/// row-major and on the CPU, whatever the replicas' devices. The same calls give the same bits on one CPU
/// model.
///
/// Used by one thread at a time. The model must outlive this object, and must not be used during a call. A
/// child of fork() cannot use its parent's object. Source: Torch's cunn DataParallelTable; PyTorch's
/// DataParallel.
class DataParallel {
 public:
  /// Starts a thread for each entry of `devices`; a device named several times is shared by as many replicas.
  /// The first `forward` makes the replicas.
  ///
  /// @param dim  the dimension along which inputs, outputs and their gradients are split, from 0. A network
  ///             takes examples first: with dim 1 it computes inputs [T, N, F] as [N, T, F], and gives
  ///             outputs [T, N, C], or [N, C] if it has one output for each sequence. A model of your own
  ///             gets parts of your tensors as they are.
  /// @throws InvalidArgument if there are no devices, an option is out of range, or a device lacks the math
  ///         mode; TrainingError naming the replica and device if one cannot be started; Error if a thread
  ///         cannot.
  DataParallel(Model& model, const std::vector<Device>& devices, int dim = 0,
               const DataParallelOptions& options = {});
  ~DataParallel();
  DataParallel(DataParallel&&) noexcept;
  DataParallel& operator=(DataParallel&&) noexcept;

  /// What the model computes for `input`. A model whose shapes are not known yet takes them from the first
  /// input.
  /// @throws InvalidArgument for an input without that dimension or empty along it, or outputs that do not
  ///         fit together; TrainingError naming the replica and device that failed (the first of several)
  ///         when the others have finished. The object can be used again afterwards.
  Tensor forward(const Tensor& input);
  /// As above, into `output`, which is resized and keeps its memory.
  void forward(const Tensor& input, Tensor& output);

  /// Adds to the gradients, given `gradOutput` = d loss / d output of the last `forward`, in training or
  /// evaluation. May be called again for the same pass. @return d loss / d input.
  /// @throws InvalidArgument without such a `forward`, or for another shape than its output's; TrainingError
  ///         as `forward` does. The gradients are then as they were.
  Tensor backward(const Tensor& gradOutput);
  /// As above, into `gradInput`, which is resized. If it is null, the gradient of the input is not computed.
  void backward(const Tensor& gradOutput, Tensor* gradInput);

  /// Sets the model's gradients to zero.
  void zeroGradients();
  /// w -= learningRate * g for the model's parameters, with each segment's learning-rate scale; frozen
  /// segments stay. Without regularisation and clipping, which belong to updaters.
  /// @throws InvalidArgument unless the learning rate is finite and not negative, or before the model has
  ///         parameters; UpdateRefused for a gradient on the CPU that is not finite: the parameters stay.
  void updateParameters(double learningRate);
  /// Copies the model's parameters and statistics to all replicas now. Has no effect before the first
  /// `forward`.
  void syncParameters();

  /// From the next `forward` on dropout is on and statistics are updated. This is the initial mode.
  void training();
  /// From the next `forward` on dropout is off and statistics stay.
  void evaluate();

  /// The replicas that took part in the last `forward`, with their shapes; none if it failed.
  std::vector<ReplicaShapes> shapes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
