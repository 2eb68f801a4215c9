#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "muster/core/ops/non_finite.h"
#include "muster/core/tensor/tensor.h"
#include "muster/parallel/exchange/slice.h"

namespace muster {

/// The memory of a tensor on the host.
inline std::span<std::byte> bytesOf(const Tensor& t) {
  return {static_cast<std::byte*>(t.raw()), t.bytes()};
}

/// A view of elements in a buffer of bytes.
inline Tensor viewAt(const Tensor& bytes, std::int64_t offset, std::int64_t elements, DType type) {
  auto* const place = static_cast<std::byte*>(bytes.raw()) + offset * static_cast<std::int64_t>(sizeOf(type));
  return Tensor::view(place, {elements}, type, bytes.device());
}

/// Copies the elements of a tensor on the host to another one of its size, unless both are the same memory.
inline void copyOnHost(const Tensor& to, const Tensor& from) {
  if (to.raw() != from.raw()) std::memcpy(to.raw(), from.raw(), from.bytes());
}

/// The same memory, without ownership: all participants would change one reference count at once.
inline Tensor viewOf(const Tensor& tensor) {
  return Tensor::view(tensor.raw(), tensor.shape(), tensor.dtype(), tensor.device(), tensor.layout());
}

/// The elements `slice` of a block.
inline Tensor part(const Tensor& block, Slice slice) {
  return block.slice(slice.begin, {slice.length()});
}

/// Calls `work`, which computes the elements of a block from `begin` on through views that begin there.
/// @throws NonFiniteResult of `op` with the element's index in the block, if `work` throws one with its index
///         in the view.
template <typename Work>
void atElement(std::int64_t begin, std::string_view op, const Work& work) {
  try {
    work();
  } catch (const NonFiniteResult& error) {
    throw NonFiniteResult(op, begin + error.element());
  }
}

/// A block's slice in part `p`: means (p = 0) come first, then variances (p = 1).
inline Slice inPart(Slice slice, int p, std::int64_t elements) {
  return {p * elements + slice.begin, p * elements + slice.end};
}

}  // namespace muster
