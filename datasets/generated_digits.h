#pragma once

#include <cstdint>
#include <span>

#include "muster/datasets/image_set_iterator.h"

namespace muster {

/// Side of a generated image, in pixels.
inline constexpr int kDigitSide = 28;

/// Draws image `index` of the data that `seed` stands for, the training or the test part.
///
/// A digit is a few strokes of a pen, its control points, size, slant, position, thickness and brightness
/// drawn by lot, with noise over it. All of it in integers and keyed by (seed, part, index): the same bytes
/// on every machine, in any order, by any thread.
///
/// @param pixels  [28 * 28] bytes, overwritten: 0 the paper, 255 the ink.
/// @return the digit.
/// @throws InvalidArgument for another number of pixels.
int drawDigit(std::uint64_t seed, bool train, std::int64_t index, std::span<std::uint8_t> pixels);

/// Pictures of digits that the program draws itself: 28x28, ten classes, for where there is no MNIST.
///
/// Features float32 [B, 1, 28, 28] in [0, 1], labels int64 [B], as from MnistDataSetIterator. Training images
/// come in an order of their own each epoch, from (seed, epoch); test images, which are others, in theirs.
class GeneratedDigitsIterator : public ImageSetIterator {
 public:
  /// Draws all images, 60,000 of them in about a second.
  /// @throws InvalidArgument for a batch or a number of examples below 1.
  GeneratedDigitsIterator(std::int64_t batch, std::int64_t examples, std::uint64_t seed, bool train);
};

}  // namespace muster
