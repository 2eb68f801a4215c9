#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "muster/core/data/batch.h"
#include "muster/datasets/source/load_data.h"

namespace muster::detail {

/// The examples of a safetensors file of data.
struct TensorFile {
  Tensor features;  ///< [N, ...], finite; padding that was not is 0
  Tensor labels;    ///< int64 [N] or [N, T], 0 where the weight is 0; or float32 [N, F] or [N, T, F], finite
  std::vector<NamedTensor> masks = {};  ///< as batches have them: "features" [N, T], "labels" [N] or [N, T]
  std::optional<LargestLabel> largest = {};  ///< of int64 labels whose weight is not 0
};

/// Reads the tensors features, labels, featuresMask and labelsMask; the masks may be missing. Labels float32
/// [N] become [N, 1].
/// @throws FileError naming the tensor: for another one, a missing one, or a shape, a type or a value of a
///         mask that does not fit, a mask of zeros alone; for a value that is not finite, but not of padding
///         or of weight 0; or a class below 0 whose weight is not 0.
TensorFile readTensorFile(const std::filesystem::path& path);

}  // namespace muster::detail
