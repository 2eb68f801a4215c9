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

  /// Gives the tensors, in order, the offsets that their shapes and types ask for, and the file so many bytes
  /// of data. A tensor that is too large for a test keeps its offsets.
  void settleOffsets();
  /// Gives the tensors the checksums of what they hold.
  void settleChecksums();
  /// Changes a number among the data, as an int64 or a double.
  void mutateData(Draw& draw);
  /// Likewise, of a tensor whose name begins so.
  void mutateTensor(std::string_view prefix, Draw& draw);
};

}  // namespace muster::fuzz
