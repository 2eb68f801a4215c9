#pragma once

#include <filesystem>
#include <vector>

#include "muster/core/data/batch.h"

namespace muster::detail {

/// The examples of a safetensors file of data.
struct TensorFile {
  Tensor features;                      ///< [N, ...]
  Tensor labels;                        ///< int64 [N] or [N, T], or float32 [N, F] or [N, T, F]
  std::vector<NamedTensor> masks = {};  ///< as batches have them: "features" [N, T], "labels" [N] or [N, T]
};

/// Reads the tensors features, labels, featuresMask and labelsMask; the masks may be missing. Labels float32
/// [N] become [N, 1].
/// @throws FileError naming the tensor: for another one, a missing one, or a shape, a type or a value of a
///         mask that does not fit.
TensorFile readTensorFile(const std::filesystem::path& path);

}  // namespace muster::detail
