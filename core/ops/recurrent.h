#pragma once

#include <cstdint>
#include <memory>

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// The equations of a recurrent layer's step, from x (the input) and h (its state). sigma is the logistic
/// function, * the element-wise product; the weights' rows are in the order of the gates.
///
/// LSTM, gates i, f, g, o, with a second state c:
///   i = sigma(Wi x + Ui h + bi)    f = sigma(Wf x + Uf h + bf)
///   g = tanh(Wg x + Ug h + bg)     o = sigma(Wo x + Uo h + bo)
///   c' = f * c + i * g             h' = o * tanh(c')
/// Source: Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000.
///
/// GRU, gates r, z, n; r acts after the matrix product, as in cuDNN:
///   r = sigma(Wr x + Ur h + br)    z = sigma(Wz x + Uz h + bz)
///   n = tanh(Wn x + bn + r * (Un h + un))
///   h' = (1 - z) * n + z * h
/// Source: Cho et al. 2014, version 1 of the article.
enum class RecurrentCell { LSTM, GRU };

/// Number of gates: LSTM 4, GRU 3.
constexpr std::int64_t gatesOf(RecurrentCell cell) {
  return cell == RecurrentCell::LSTM ? 4 : 3;
}
/// The sizes of a recurrent layer.
struct RecurrentShape {
  RecurrentCell cell = RecurrentCell::LSTM;
  std::int64_t batch = 1, steps = 1, features = 1, units = 1;
  bool sequences = true;  ///< the output is the state after each step, else after the last one only

  std::int64_t gates() const { return gatesOf(cell); }
  Shape input() const { return {batch, steps, features}; }
  /// [N, T, units], or [N, units] of the last step.
  Shape output() const { return sequences ? Shape{batch, steps, units} : Shape{batch, units}; }
  /// @throws InvalidArgument naming the sizes.
  void validate() const;
};

/// A recurrent layer's parameters, or their gradients. Float32, RowMajor.
struct RecurrentWeights {
  Tensor input;          ///< W [gates * units, features]
  Tensor recurrent;      ///< U [gates * units, units]
  Tensor bias;           ///< b [gates * units]
  Tensor recurrentBias;  ///< u [units]; GRU only
};

/// A recurrent layer planned for one shape. Every sequence starts from zero states. `forward` keeps what
/// `backward` needs. One thread at a time.
///
/// @param mask  float32 [N, T]: 1 for a real step, 0 for padding, anywhere in the sequence; undefined: all
///         are real.
/// A padded step does not change the states, so padding changes no result, whatever it contains; its output
/// is zero. Without `sequences` the output is the state after the last real step; zero if no step is real.
class RecurrentPlan {
 public:
  virtual ~RecurrentPlan() = default;
  virtual void forward(const Tensor& x, const RecurrentWeights& weights, const Tensor& mask, Tensor& y) = 0;
  /// Backward through time, after `forward` with the same weights and mask: overwrites the gradients, and
  /// `gradX` if it is defined. May be called again. @throws InvalidArgument unless planned for training.
  virtual void backward(const RecurrentWeights& weights, const Tensor& mask, const Tensor& gradY,
                        RecurrentWeights& gradients, Tensor& gradX) = 0;
};

/// @param training  whether `backward` will be called.
/// @throws InvalidArgument for an invalid shape.
std::unique_ptr<RecurrentPlan> planRecurrent(const RecurrentShape& shape, bool training, Context& context);

namespace cpu {
std::unique_ptr<RecurrentPlan> planRecurrent(const RecurrentShape& shape, bool training, Context& context);
}
namespace cuda {
std::unique_ptr<RecurrentPlan> planRecurrent(const RecurrentShape& shape, bool training, Context& context);
}

}  // namespace muster
