#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {
/// How the elements of a move are encoded.
enum class DeltaCodec {
  Bf16,  ///< 16 bits: the upper half of a float32, rounded to the nearest
  Int8,  ///< 8 bits, and a float32 scale for each 256 elements: the largest is 127
  E3M0,  ///< 4 bits, and an exponent for each 256: plus or minus 2^e over seven octaves, or 0
  TopK   ///< the largest elements, with their positions
};
/// A codec and its options.
struct DeltaCoding {
  DeltaCodec codec = DeltaCodec::Bf16;
  std::int64_t largest = 0;  ///< with TopK: elements that are sent; of equal ones those of lower index
  double remember = 1;       ///< part of what was not sent that the residual keeps, in [0, 1]
};

/// Encodes what a replica sends of elements [begin, end), and decodes it again: the move
///
///     v = values - base + residual
///
/// of each element becomes q, which its codec can express. Then `sent`, which holds the base at first, is
/// base + q, rounded, and residual = remember * (v - (sent - base)): what was sent and what was not add up.
/// Scales and positions are counted from `begin`. The move is rounded to float32 before it is encoded, but
/// for TopK, which sends the values themselves.
///
/// @param values  float32 or float64, RowMajor, like `sent` and `residual`, on the context's device.
/// @throws InvalidArgument if tensors or numbers do not fit. Enqueued on GPUs; allocates nothing.
/// Sources: Dettmers 2016 (8 bits); Douillard et al. 2025 (E3M0); Aji & Heafield 2017 (the largest); the
/// residual is the error feedback of Seide et al. 2014.
void codeDelta(const DeltaCoding& coding, const Tensor& values, const Tensor& sent, const Tensor& residual,
               std::int64_t begin, std::int64_t end, Context& context);

/// Bytes that travel for so many elements. @param type  of the values, which TopK sends as they are: without
/// positions, if it sends all.
std::int64_t codedBytes(const DeltaCoding& coding, std::int64_t elements, DType type = DType::Float32);

/// As `codeDelta`, on the CPU, and writes what travels. @param packed  `codedBytes` bytes.
/// @throws DeviceUnavailable on a GPU.
void packDelta(const DeltaCoding& coding, const Tensor& values, const Tensor& sent, const Tensor& residual,
               std::int64_t begin, std::int64_t end, std::span<std::byte> packed, Context& context);
/// Where they arrive: `sent`, which holds the base at first, gets the bits that `packDelta` gave it.
/// @throws InvalidArgument for positions that cannot be, DeviceUnavailable on a GPU.
void unpackDelta(const DeltaCoding& coding, std::span<const std::byte> packed, const Tensor& sent,
                 std::int64_t begin, std::int64_t end, Context& context);

namespace cpu {
void codeDelta(const DeltaCoding& coding, const Tensor& values, const Tensor& sent, const Tensor& residual,
               std::int64_t begin, std::int64_t end, Context& context);
void packDelta(const DeltaCoding& coding, const Tensor& values, const Tensor& sent, const Tensor& residual,
               std::int64_t begin, std::int64_t end, std::span<std::byte> packed, Context& context);
void unpackDelta(const DeltaCoding& coding, std::span<const std::byte> packed, const Tensor& sent,
                 std::int64_t begin, std::int64_t end, Context& context);
}  // namespace cpu
namespace cuda {
void codeDelta(const DeltaCoding& coding, const Tensor& values, const Tensor& sent, const Tensor& residual,
               std::int64_t begin, std::int64_t end, Context& context);
}  // namespace cuda

}  // namespace muster
