#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/core/base/dtype.h"
#include "muster/core/base/shape.h"
#include "muster/core/device/buffer.h"
#include "muster/core/device/context.h"
#include "muster/core/tensor/layout.h"

namespace muster {

/// A contiguous array of numbers on a device: shape, element type, layout and memory. Copying a Tensor copies
/// the handle: both refer to the same elements. It shares ownership of its memory, or is a view of memory
/// owned elsewhere.
class Tensor {
 public:
  /// No memory: `defined()` is false.
  Tensor() = default;

  /// Uninitialised elements. @throws OutOfMemory.
  static Tensor empty(const Shape& shape, DType dtype = DType::Float32, Device device = Device::cpu(),
                      Layout layout = Layout::RowMajor);
  /// All elements zero, including padding.
  static Tensor zeros(const Shape& shape, DType dtype = DType::Float32, Device device = Device::cpu(),
                      Layout layout = Layout::RowMajor);
  /// As `empty` on the CPU, in memory that GPUs copy to and from asynchronously (`Buffer::pinned`).
  static Tensor pinned(const Shape& shape, DType dtype = DType::Float32);
  /// A float32 tensor on the CPU with these elements. @throws InvalidArgument if their number does not match.
  static Tensor of(std::span<const float> elements, const Shape& shape);
  static Tensor of(std::initializer_list<float> elements, const Shape& shape);
  /// A view of memory, which must outlive it.
  static Tensor view(void* data, const Shape& shape, DType dtype = DType::Float32,
                     Device device = Device::cpu(), Layout layout = Layout::RowMajor);

  bool defined() const { return data_ != nullptr; }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  Layout layout() const { return layout_; }
  std::int64_t elements() const { return shape_.elements(); }
  /// Elements in memory, including a layout's padding.
  std::int64_t storage() const { return storageElements(shape_, layout_); }
  std::size_t bytes() const { return static_cast<std::size_t>(storage()) * sizeOf(dtype_); }

  /// @throws InvalidArgument unless T is the element type.
  template <typename T>
  T* data() const {
    requireDType(kDTypeOf<T>);
    return reinterpret_cast<T*>(data_);
  }
  /// All elements in memory as a span; CPU only.
  template <typename T>
  std::span<T> span() const {
    return {data<T>(), static_cast<std::size_t>(storage())};
  }
  void* raw() const { return data_; }
  /// The element at these indices, one for each dimension: `scores.at(0, 2)`, and of another element type
  /// `labels.at<std::int64_t>(3)`. For single elements; loops are faster over `span`.
  /// @throws InvalidArgument for another element type, a wrong number of indices,
  ///         one that is out of range, or a tensor that is on a GPU
  ///         or not RowMajor.
  template <typename T = float, std::integral... Index>
  T& at(Index... index) const {
    return data<T>()[positionOf({static_cast<std::int64_t>(index)...})];
  }

  /// The same memory in another shape. @throws InvalidArgument unless RowMajor with as many elements.
  Tensor reshape(const Shape& shape) const;
  /// Rows [begin, end) of the first dimension, the same memory; RowMajor only.
  Tensor rows(std::int64_t begin, std::int64_t end) const;
  /// Elements [offset, offset + shape.elements()) in memory as a tensor of `shape`; RowMajor only.
  Tensor slice(std::int64_t offset, const Shape& shape) const;

  /// Makes this a RowMajor tensor of `shape` on the CPU with undefined elements. Keeps its memory if it owns
  /// enough, so a recycled tensor allocates once for its largest shape; if other tensors share the memory, it
  /// keeps it only for a shape that takes no more bytes. A `pinned` tensor stays pinned.
  void resize(const Shape& shape, DType dtype);

  /// For example `float32 [128, 1, 28, 28] on cpu`; `valuesText` has the elements.
  std::string toString() const;

 private:
  void requireDType(DType expected) const;
  std::int64_t positionOf(std::initializer_list<std::int64_t> index) const;

  std::shared_ptr<const Buffer> owner_;  // empty for a view
  std::byte* data_ = nullptr;
  Shape shape_{0};
  DType dtype_ = DType::Float32;
  Device device_;
  Layout layout_ = Layout::RowMajor;
};

/// Copies all elements. @throws InvalidArgument unless shapes, element types and layouts are equal.
///
/// Between CPU tensors the copy is done on return. If source or target is on a GPU, the copy is enqueued on
/// `stream` of `context`, which is on that GPU (between two GPUs, on either): until an event after it is
/// complete, the source must not change, and a target on the CPU must not be read. Copies overlap with the
/// GPU's other work only if the CPU memory is `pinned`. With a context on the CPU it is `copy(source,
/// target)`.
void copy(const Tensor& source, Tensor& target, Context& context, Stream stream = Stream::Compute);

/// As `copy`, without a context: done on return. Waits for no stream: first finish work on source and target
/// (`Context::synchronize`).
void copy(const Tensor& source, Tensor& target);

/// Sets every byte to zero; enqueued on a GPU.
void setZero(Tensor& tensor, Context& context);

/// An owning copy in the same layout on the same device. Done on return, as `copy` without a context.
Tensor cloneTensor(const Tensor& source);

/// An owning copy in the same layout on `device`, which may be the source's device: always separate memory.
/// Done on return, as `copy` without a context.
/// @throws InvalidArgument for an undefined tensor; DeviceUnavailable if this build cannot use `device`.
Tensor copyTo(const Tensor& source, Device device);

/// Copies each tensor as above, in order: for example a replica's parameters. [source]
std::vector<Tensor> copyTo(std::span<const Tensor> sources, Device device);

/// The index of the greatest element in each row of the last dimension, [..., C] -> int64 [...] on the CPU:
/// of a network's output the predicted classes. Of equal elements the first; NaN counts as the greatest.
/// Elements on a GPU are copied as by `copy` without a context.
/// @throws InvalidArgument unless `x` is RowMajor and C is at least 1.
Tensor argmax(const Tensor& x);

/// The elements as nested lists, then `toString()` on a line. Of more than 1000 elements, each dimension
/// longer than 6 is shortened to its first and last three. Numbers have at most six digits; longer rows are
/// wrapped. Elements on a GPU are copied as by `copy` without a context; those in another layout are left
/// out.
///
///     [[  1, 2.5,  -3],
///      [  4,   5,   6]]
///     float32 [2, 3] on cpu
std::string valuesText(const Tensor& tensor);

/// Writes `valuesText`. For fmt include "muster/core/tensor/tensor_format.h".
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

/// Whether two tensors share at least one byte of memory.
bool shareMemory(const Tensor& a, const Tensor& b);

}  // namespace muster
