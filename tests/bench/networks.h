#pragma once

#include <cstdint>

#include "muster/core/base/random.h"
#include "muster/core/data/in_memory.h"
#include "muster/core/nn/models/convnet.h"

// Networks and data for the programs that measure training.

namespace muster::bench {

/// Random images in memory, as in the baseline: this measures training, not reading files.
/// @param dtype  Float32, or UInt8 as in the files.
inline InMemoryDataSetIterator randomImages(std::int64_t examples, std::int64_t batch,
                                            DType dtype = DType::Float32,
                                            MemoryPlacement placement = MemoryPlacement::Host) {
  Tensor features = Tensor::empty({examples, 1, 28, 28}, dtype),
         labels = Tensor::empty({examples}, DType::Int64);
  const RandomStream random(1, "images");
  for (std::int64_t i = 0; i < features.elements(); ++i) {
    const double value = random.uniform(static_cast<std::uint64_t>(i));
    if (dtype == DType::UInt8)
      features.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(255 * value);
    else
      features.data<float>()[i] = static_cast<float>(value);
  }
  for (std::int64_t i = 0; i < examples; ++i) labels.data<std::int64_t>()[i] = i % 10;
  return {features, labels, batch, 1, placement};
}

}  // namespace muster::bench
