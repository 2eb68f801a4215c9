#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "muster/core/base/fields.h"
#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// How several activations are combined, element by element.
enum class Combination {
  Add,
  Subtract,  ///< the first minus the second; exactly two
  Product,
  Average,
  Max,  ///< the gradient goes to the first of equal ones
};

template <>
struct EnumNames<Combination> {
  static constexpr std::array<std::pair<Combination, std::string_view>, 5> kNames{{
      {Combination::Add, "add"},
      {Combination::Subtract, "subtract"},
      {Combination::Product, "product"},
      {Combination::Average, "average"},
      {Combination::Max, "max"},
  }};
};

/// y = x[0] + x[1] + ... (or another `combination`), in the order of the inputs.
///
/// @param x  at least one (Subtract: two), float32, equal in shape and layout.
/// @param y  like them; may be the memory of x[0].
/// @throws InvalidArgument naming the input that differs. Allocates nothing.
void combine(Combination combination, std::span<const Tensor> x, Tensor& y, Context& context);

/// gradX = d loss / d x[input], for gradY = d loss / d y. Overwritten; like the inputs, with its own memory.
void combineBackward(Combination combination, std::span<const Tensor> x, std::size_t input,
                     const Tensor& gradY, Tensor& gradX, Context& context);

/// y += x; float32, equal in shape and layout; may be the same memory.
void addTo(const Tensor& x, Tensor& y, Context& context);

/// y = factor x; float32, equal in shape and layout; may be the same memory.
void scale(double factor, const Tensor& x, Tensor& y, Context& context);

/// Copies elements [from, from + count) of dimension `axis` of `x` to [to, to + count) of `y`'s. Joins
/// tensors along an axis, or takes a part of one.
///
/// @param x,y  float32, RowMajor, equal in all dimensions except `axis`.
/// @throws InvalidArgument naming the shapes if they do not match.
void copyRange(const Tensor& x, std::int64_t from, Tensor& y, std::int64_t to, std::int64_t count, int axis,
               Context& context);

namespace cpu {
void combine(Combination combination, std::span<const Tensor> x, Tensor& y, Context& context);
void combineBackward(Combination combination, std::span<const Tensor> x, std::size_t input,
                     const Tensor& gradY, Tensor& gradX, Context& context);
void scale(double factor, const Tensor& x, Tensor& y, Context& context);
void copyRange(const Tensor& x, std::int64_t from, Tensor& y, std::int64_t to, std::int64_t count, int axis,
               Context& context);
}  // namespace cpu
namespace cuda {
void combine(Combination combination, std::span<const Tensor> x, Tensor& y, Context& context);
void combineBackward(Combination combination, std::span<const Tensor> x, std::size_t input,
                     const Tensor& gradY, Tensor& gradX, Context& context);
void scale(double factor, const Tensor& x, Tensor& y, Context& context);
void copyRange(const Tensor& x, std::int64_t from, Tensor& y, std::int64_t to, std::int64_t count, int axis,
               Context& context);
}  // namespace cuda

}  // namespace muster
