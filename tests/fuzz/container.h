#pragma once

#include <boost/json/value.hpp>
#include <optional>
#include <string>

#include "tests/fuzz/target.h"

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
  /// Changes a number among the data, as an int64 or a double.
  void mutateData(Draw& draw);
  /// Likewise, in a tensor whose name begins with `prefix`.
  void mutateTensor(std::string_view prefix, Draw& draw);
};

}  // namespace muster::fuzz
