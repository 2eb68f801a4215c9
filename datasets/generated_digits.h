#pragma once

#include <cstdint>
#include <span>

#include "muster/datasets/image_set_iterator.h"

namespace muster {

/// Side of a generated image, in pixels.
inline constexpr int kDigitSide = 28;

/// Generates image `index` of the training or test part of the data set `seed`.
///
/// A digit is a few strokes of a pen. Control points, size, slant, position, thickness, brightness and noise
/// are random. All arithmetic is in integers, and (seed, part, index) keys the random numbers: the same bytes
/// on every machine, in any order, on any thread.
///
/// @param pixels  [28 * 28] bytes, overwritten: 0 is paper, 255 is ink.
/// @return the digit.
/// @throws InvalidArgument for another number of pixels.
int drawDigit(std::uint64_t seed, bool train, std::int64_t index, std::span<std::uint8_t> pixels);

/// Generated images of digits, for use without MNIST: 28x28, ten classes.
///
/// Features float32 [B, 1, 28, 28] in [0, 1], labels int64 [B], as from MnistDataSetIterator. Training images
/// are shuffled each epoch, by (seed, epoch); test images are different ones and keep their order.
class GeneratedDigitsIterator : public ImageSetIterator {
 public:
  /// Generates all images, 60,000 in about a second.
  /// @throws InvalidArgument if `batch` or `examples` is below 1.
  GeneratedDigitsIterator(std::int64_t batch, std::int64_t examples, std::uint64_t seed, bool train);
  const NumberedBatches* numbered() const override { return numberedIf<GeneratedDigitsIterator>(); }
};

}  // namespace muster
