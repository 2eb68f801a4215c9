#pragma once

#include <cstdint>
#include <memory>

#include "muster/datasets/image_set.h"

namespace muster {

/// Examples from Gaussian mixtures in 128 dimensions: 4 classes of 8 clusters each. The clusters' centres are
/// normally distributed with 0.35 times the noise's deviation. Stored as bytes in 8x16 images. A linear
/// classifier reaches about 60 %, the best possible one about 95 %. Seed, part and index determine an
/// example.
/// @param train  the training part, else the test part.
std::shared_ptr<const ImageSet> gaussianMixtures(std::uint64_t seed, bool train, std::int64_t examples);

}  // namespace muster
