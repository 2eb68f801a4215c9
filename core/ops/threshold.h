#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// A vector of which each element is -threshold, 0 or +threshold.
///
/// A message with few elements is a list: a word for each, its index times 2, plus 1 if it is negative, in
/// ascending order. From one element in sixteen on it is a bitmap of two bits for each: 1 positive, 2
/// negative, 0 neither. A message is never longer than the bitmap: a sixteenth of a float32 vector.
struct ThresholdMessage {
  /// @param elements  of the vector, 0 to 2^31 - 1. Allocates for the longest message.
  explicit ThresholdMessage(std::int64_t elements);
  /// Bytes of the words that the constructor allocates.
  static std::int64_t mostBytes(std::int64_t elements);

  std::int64_t elements = 0;
  float threshold = 0;
  std::int64_t nonZero = 0;
  bool isMap = false;
  std::vector<std::uint32_t> words;  ///< the first `wordCount()` are valid

  /// Makes the message empty.
  void clear();
  /// Makes this a message of so many elements that are not 0, whose words come from elsewhere.
  /// @throws InvalidArgument unless there can be such a message.
  void expect(std::int64_t nonZeroElements, float itsThreshold);
  /// Checks words that came from elsewhere. @throws InvalidArgument unless they are of a message as this one.
  void check() const;
  std::int64_t wordCount() const;
  /// Bytes sent: the words, and 16 bytes for threshold, counts and kind.
  std::int64_t bytes() const { return 16 + 4 * wordCount(); }
};

// All tensors are float32 [P], RowMajor, on the context's device. On a GPU each call waits for what it
// returns to the host.

/// residual += values - base: adds an update to the part that has not been sent yet.
/// @return how many elements of the residual are then at least `threshold` in magnitude.
/// @throws InvalidArgument if sizes differ, or unless threshold > 0; NonFiniteScore if an element of the
///         residual is not finite afterwards.
std::int64_t accumulateUpdate(const Tensor& values, const Tensor& base, float threshold, Tensor& residual,
                              Context& context);

/// Subtracts a threshold with its sign from each element of the residual that is at least as large, and
/// writes these elements to the message. The rest stays in the residual. Allocates nothing on the CPU.
/// Source: Strom 2015, "Scalable distributed DNN training using commodity GPU cloud computing".
/// @param nonZero  the number of these elements, from `accumulateUpdate`.
/// @throws InvalidArgument as above.
void encodeThreshold(Tensor& residual, float threshold, std::int64_t nonZero, ThresholdMessage& message,
                     Context& context);

/// out[i] += scale * message[i] for i in [begin, end). Several threads may each take a slice.
/// @throws InvalidArgument if sizes differ or the range is not inside them.
void addDecoded(const ThresholdMessage& message, float scale, std::int64_t begin, std::int64_t end,
                Tensor& out, Context& context);

/// Clamps each element to [-limit, limit].
void clampElements(Tensor& values, float limit, Context& context);
/// How many elements of a residual reach the threshold, and how many are not finite.
struct ResidualCounts {
  std::int64_t reaching = 0, notFinite = 0;
};

namespace cpu {
ResidualCounts accumulateUpdate(const Tensor& values, const Tensor& base, float threshold, Tensor& residual);
void encodeThreshold(Tensor& residual, float threshold, std::int64_t nonZero, ThresholdMessage& message);
void addDecoded(const ThresholdMessage& message, float scale, std::int64_t begin, std::int64_t end,
                Tensor& out);
void clampElements(Tensor& values, float limit);
}  // namespace cpu
namespace cuda {
ResidualCounts accumulateUpdate(const Tensor& values, const Tensor& base, float threshold, Tensor& residual,
                                Context& context);
void encodeThreshold(Tensor& residual, float threshold, ThresholdMessage& message, Context& context);
void addDecoded(const ThresholdMessage& message, float scale, std::int64_t begin, std::int64_t end,
                Tensor& out, Context& context);
void clampElements(Tensor& values, float limit, Context& context);
}  // namespace cuda

}  // namespace muster
