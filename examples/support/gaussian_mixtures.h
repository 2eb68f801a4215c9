#pragma once

#include <cstdint>
#include <memory>

#include "muster/datasets/image_set.h"

namespace example {

/// Examples from Gaussian mixtures: 4 classes of 8 clusters each, whose centres are normal, too, in 128
/// dimensions, with 0.35 of the noise's deviation. As bytes, in images of 8x16. A linear classifier is at
/// about 60 %; the best possible one at about 95 %. The same examples for the same seed, part and index.
/// @param train  the part to train with, else that to test with.
std::shared_ptr<const muster::ImageSet> gaussianMixtures(std::uint64_t seed, bool train,
                                                         std::int64_t examples);

}  // namespace example
