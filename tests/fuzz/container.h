#pragma once

#include <boost/json/value.hpp>

#include "tests/fuzz/target.h"
#include "tests/fuzz/tensor_numbers.h"

namespace muster::fuzz {

/// A safetensors file taken apart, to be changed.
struct Container {
  boost::json::object header;  ///< with "__metadata__"
  std::string data;

  static std::optional<Container> in(ByteSpan bytes);
  Bytes bytes() const;

  /// Sets the tensors' offsets in order, according to their shapes and types, and resizes the data. A tensor
  /// that is too large for a test keeps its offsets.
  void settleOffsets();
  /// Sets the tensors' checksums.
  void settleChecksums();
  /// The names of the tensors that begin with `prefix` and are within the data.
  std::vector<std::string> tensors(std::string_view prefix) const;
  /// The numbers of one of them.
  TensorNumbers numbers(std::string_view tensor);
  /// Replaces the first number of a tensor of int64, if there is one of this name.
  void replace(std::string_view tensor, std::int64_t number);
  /// Replaces a number by a hostile one: in a tensor whose name begins with `prefix`, or anywhere if there is
  /// none.
  void mutateNumber(std::string_view prefix, Draw& draw);
};

}  // namespace muster::fuzz
