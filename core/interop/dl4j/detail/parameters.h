#pragma once

#include <cstdint>
#include <string>

namespace muster::dl4j::detail {

/// How the elements of a parameter are ordered in Deeplearning4j's vector of all parameters, compared with
/// the network's tensor. By default they are the same: dense weights [in, out] in column order there are
/// [out, in] in row order here.
struct Order {
  std::int64_t outer = 1, inner = 1;  ///< there [outer, inner, ...], here [inner, outer, ...]
  /// The first dimension is an LSTM's gates: there candidate, forget, output, input; here input, forget,
  /// candidate, output.
  bool gates = false;

  /// The element here of element `i` there, of `count`.
  std::int64_t here(std::int64_t i, std::int64_t count) const;
};

/// How the values differ.
enum class Coding {
  Same,
  LogDeviation,  ///< there log10 of the standard deviation, here the variance
};

/// A parameter of Deeplearning4j.
struct Parameter {
  std::string tensor;  ///< the network's: "conv1.weight"
  Order order = {};
  Coding coding = Coding::Same;
  bool trained = true;  ///< has a state of the updater; running statistics have none
};

/// A value as the network has it.
float decoded(Coding coding, float there);

}  // namespace muster::dl4j::detail
