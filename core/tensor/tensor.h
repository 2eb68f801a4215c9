#pragma once

#include <cstddef>
#include <cstdint>
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

/// A contiguous array of numbers on a device: a shape, an element type, a layout and a place. Copying a
/// Tensor copies the handle, as with a pointer: both look at the same elements. It either shares the
/// ownership of its memory or is a view of somebody else's.
class Tensor {
 public:
  /// No memory, no elements: `defined()` is false.
  Tensor() = default;

  /// Uninitialised elements. @throws OutOfMemory.
  static Tensor empty(const Shape& shape, DType dtype = DType::Float32, Device device = Device::cpu(),
                      Layout layout = Layout::RowMajor);
  /// Elements all zero, padding included.
  static Tensor zeros(const Shape& shape, DType dtype = DType::Float32, Device device = Device::cpu(),
                      Layout layout = Layout::RowMajor);
  /// As `empty` on the CPU, in memory that GPUs copy from and to directly (`Buffer::pinned`).
  static Tensor pinned(const Shape& shape, DType dtype = DType::Float32);
  /// A float32 tensor on the CPU with these elements. @throws InvalidArgument if their number does not fit.
  static Tensor of(std::span<const float> elements, const Shape& shape);
  static Tensor of(std::initializer_list<float> elements, const Shape& shape);
  /// Looks at memory that somebody else owns and keeps alive.
  static Tensor view(void* data, const Shape& shape, DType dtype = DType::Float32,
                     Device device = Device::cpu(), Layout layout = Layout::RowMajor);

  bool defined() const { return data_ != nullptr; }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  Layout layout() const { return layout_; }
  std::int64_t elements() const { return shape_.elements(); }
  /// Elements in memory, a layout's padding included.
  std::int64_t storage() const { return storageElements(shape_, layout_); }
  std::size_t bytes() const { return static_cast<std::size_t>(storage()) * sizeOf(dtype_); }

  /// @throws InvalidArgument unless T is the element type.
  template <typename T>
  T* data() const {
    requireDType(kDTypeOf<T>);
    return reinterpret_cast<T*>(data_);
  }
  /// All elements in memory as a span; on the CPU only.
  template <typename T>
  std::span<T> span() const {
    return {data<T>(), static_cast<std::size_t>(storage())};
  }
  void* raw() const { return data_; }

  /// The same memory in another shape. @throws InvalidArgument unless RowMajor and of as many elements.
  Tensor reshape(const Shape& shape) const;
  /// Rows [begin, end) of the first dimension, the same memory; RowMajor only.
  Tensor rows(std::int64_t begin, std::int64_t end) const;
  /// Elements [offset, offset + shape.elements()) in memory as a tensor of `shape`; RowMajor only.
  Tensor slice(std::int64_t offset, const Shape& shape) const;

  /// Makes this a RowMajor tensor of `shape` on the CPU, its elements undefined. Keeps its memory where it
  /// owns enough of it from the beginning, so that a recycled tensor allocates once for its largest shape.
  /// What was `pinned` stays so.
  void resize(const Shape& shape, DType dtype);

  /// As in `float32 [128, 1, 28, 28] on cpu`.
  std::string toString() const;

 private:
  void requireDType(DType expected) const;

  std::shared_ptr<const Buffer> owner_;  // empty for a view
  std::byte* data_ = nullptr;
  Shape shape_{0};
  DType dtype_ = DType::Float32;
  Device device_;
  Layout layout_ = Layout::RowMajor;
};

/// Copies all elements. @throws InvalidArgument unless shapes, element types and layouts agree.
///
/// On the CPU it is done on return. Where one of both lies on a GPU it is enqueued on `stream` of `context`,
/// which is that GPU's (between two GPUs either's): the source must keep its values, and a target on the CPU
/// must not be read, until an event behind it is complete. Copies overlap with the GPU's other work only
/// where the memory on the CPU is `pinned`. With a context on the CPU it is the copy without one.
void copy(const Tensor& source, Tensor& target, Context& context, Stream stream = Stream::Compute);

/// As `copy`, for those who have no context at hand: done on return. It waits for no context's stream, so
/// whoever enqueued work on the source or the target has waited for that (`Context::synchronize`).
void copy(const Tensor& source, Tensor& target);

/// Sets every byte to zero; on a GPU enqueued.
void setZero(Tensor& tensor, Context& context);

/// An owning copy in the same layout on the same device. Done on return, as `copy` without a context.
Tensor cloneTensor(const Tensor& source);

/// An owning copy in the same layout on `device`, which may be the source's own: what is written to the copy
/// never shows in the source. Done on return, as `copy` without a context.
/// @throws InvalidArgument for an undefined tensor; DeviceUnavailable where this build cannot use `device`.
Tensor copyTo(const Tensor& source, Device device);

/// The same of each tensor, in order: a replica's own parameters, say. [source]
std::vector<Tensor> copyTo(std::span<const Tensor> sources, Device device);

/// Whether two tensors view at least one common byte of one device's memory.
bool shareMemory(const Tensor& a, const Tensor& b);

}  // namespace muster
