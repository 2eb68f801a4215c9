#include "muster/core/tensor/tensor.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/device/detail/cuda.h"

namespace muster {

// Checks format their message only on failure: they run in every step, which must not allocate.

std::int64_t storageElements(const Shape& shape, Layout layout) {
  const auto blocks = [](std::int64_t n) { return (n + kLayoutBlock - 1) / kLayoutBlock * kLayoutBlock; };
  if (layout == Layout::RowMajor || layout == Layout::ChannelsLast || shape.rank() == 0)
    return shape.elements();
  const int axis = layout == Layout::SampleBlocks ? 0 : 1;
  std::int64_t product = 1;
  for (int i = 0; i < shape.rank(); ++i) product *= i == axis ? blocks(shape[i]) : shape[i];
  return product;
}

namespace {

// A tensor without elements still has memory, so that "undefined" and "empty" differ.
std::size_t bytesToOwn(const Shape& shape, DType dtype, Layout layout) {
  return std::max<std::size_t>(static_cast<std::size_t>(storageElements(shape, layout)) * sizeOf(dtype), 1);
}

/// Whether both are on the CPU; a build without CUDA has no other device.
bool bothOnCpu(std::string_view op, const Tensor& a, const Tensor& b) {
  const bool cpu = a.device().isCpu() && b.device().isCpu();
  if (!cpu && !kCudaBuilt)
    throw DeviceUnavailable(
        fmt::format("{}: {} to {} needs a build with CUDA", op, a.toString(), b.toString()));
  return cpu;
}

[[maybe_unused]] cuda::Place placeOf(const Tensor& tensor) {  // without CUDA
  return {static_cast<std::byte*>(tensor.raw()), tensor.device()};
}

void checkCopy(const Tensor& source, const Tensor& target) {
  if (source.shape() != target.shape() || source.dtype() != target.dtype() ||
      source.layout() != target.layout())
    throw InvalidArgument(
        fmt::format("copy: {} cannot be copied to {}", source.toString(), target.toString()));
}

void copyOnCpu(const Tensor& source, Tensor& target) {
  if (source.raw() != target.raw() && source.bytes() > 0)
    std::memcpy(target.raw(), source.raw(), source.bytes());
}

}  // namespace

Tensor Tensor::empty(const Shape& shape, DType dtype, Device device, Layout layout) {
  auto buffer = std::make_shared<const Buffer>(bytesToOwn(shape, dtype, layout), device);
  Tensor tensor = view(buffer->data(), shape, dtype, device, layout);
  tensor.owner_ = std::move(buffer);
  return tensor;
}

Tensor Tensor::zeros(const Shape& shape, DType dtype, Device device, Layout layout) {
  Tensor tensor = empty(shape, dtype, device, layout);
  if constexpr (kCudaBuilt)
    if (!device.isCpu()) cuda::zeroBytes(placeOf(tensor), tensor.bytes());
  if (device.isCpu()) std::memset(tensor.data_, 0, tensor.bytes());
  return tensor;
}

Tensor Tensor::pinned(const Shape& shape, DType dtype) {
  auto buffer = std::make_shared<const Buffer>(Buffer::pinned(bytesToOwn(shape, dtype, Layout::RowMajor)));
  Tensor tensor = view(buffer->data(), shape, dtype);
  tensor.owner_ = std::move(buffer);
  return tensor;
}

Tensor Tensor::of(std::span<const float> elements, const Shape& shape) {
  require(static_cast<std::int64_t>(elements.size()) == shape.elements(),
          "tensor: {} elements do not fill {}", elements.size(), shape.toString());
  Tensor tensor = empty(shape);
  std::ranges::copy(elements, tensor.data<float>());
  return tensor;
}

Tensor Tensor::of(std::initializer_list<float> elements, const Shape& shape) {
  return of(std::span<const float>(elements.begin(), elements.size()), shape);
}

Tensor Tensor::view(void* data, const Shape& shape, DType dtype, Device device, Layout layout) {
  Tensor tensor;
  tensor.data_ = static_cast<std::byte*>(data);
  tensor.shape_ = shape;
  tensor.dtype_ = dtype;
  tensor.device_ = device;
  tensor.layout_ = layout;
  return tensor;
}

Tensor Tensor::reshape(const Shape& shape) const {
  if (layout_ != Layout::RowMajor || shape.elements() != elements())
    throw InvalidArgument(fmt::format("reshape: {} cannot become {}", toString(), shape.toString()));
  Tensor result = *this;
  result.shape_ = shape;
  return result;
}

Tensor Tensor::rows(std::int64_t begin, std::int64_t end) const {
  if (shape_.rank() == 0 || begin < 0 || begin > end || end > shape_[0])
    throw InvalidArgument(fmt::format("rows: {} has no rows [{}, {})", toString(), begin, end));
  const Shape row = shape_.dropFirst();
  return slice(begin * row.elements(), row.prepend(end - begin));
}

Tensor Tensor::slice(std::int64_t offset, const Shape& shape) const {
  if (layout_ != Layout::RowMajor || offset < 0 || offset + shape.elements() > elements())
    throw InvalidArgument(
        fmt::format("slice: {} has no {} at element {}", toString(), shape.toString(), offset));
  Tensor result = *this;
  result.data_ += static_cast<std::size_t>(offset) * sizeOf(dtype_);
  result.shape_ = shape;
  return result;
}

void Tensor::resize(const Shape& shape, DType dtype) {
  const auto bytes = static_cast<std::size_t>(shape.elements()) * sizeOf(dtype);
  // This tensor may be a view of the first rows of a larger one, whose other rows follow in memory: it grows
  // in place only if no other tensor shares the memory.
  const bool fits = owner_ && device_.isCpu() && data_ == owner_->data() && bytes <= owner_->bytes() &&
                    (bytes <= this->bytes() || owner_.use_count() == 1);
  if (!fits) {
    *this = owner_ && owner_->isPinned() ? pinned(shape, dtype) : empty(shape, dtype);
    return;
  }
  shape_ = shape;
  dtype_ = dtype;
  layout_ = Layout::RowMajor;
}

std::string Tensor::toString() const {
  if (!defined()) return "an undefined tensor";
  auto text = fmt::format("{} {} on {}", muster::toString(dtype_), shape_.toString(), device_.toString());
  if (layout_ != Layout::RowMajor) text += fmt::format(" in {}", nameOf(layout_));
  return text;
}

void Tensor::requireDType(DType expected) const {
  if (dtype_ != expected) [[unlikely]]
    throw InvalidArgument(fmt::format("tensor: {} was read as {}", toString(), muster::toString(expected)));
}

void copy(const Tensor& source, Tensor& target) {
  checkCopy(source, target);
  if (bothOnCpu("copy", source, target)) return copyOnCpu(source, target);
  if constexpr (kCudaBuilt) cuda::copyBytes(placeOf(source), placeOf(target), source.bytes());
}

void copy(const Tensor& source, Tensor& target, Context& context, Stream stream) {
  checkCopy(source, target);
  if (bothOnCpu("copy", source, target)) return copyOnCpu(source, target);
  if (context.device().isCpu()) return copy(source, target);  // CPU contexts do not enqueue work
  if (context.device() != source.device() && context.device() != target.device())
    throw InvalidArgument(fmt::format("copy: {} to {} cannot be enqueued on {}", source.toString(),
                                      target.toString(), context.device().toString()));
  if constexpr (kCudaBuilt)
    cuda::copyBytes(placeOf(source), placeOf(target), source.bytes(), context, stream);
}

void setZero(Tensor& tensor, Context& context) {
  if (tensor.device().isCpu()) {
    std::memset(tensor.raw(), 0, tensor.bytes());
    return;
  }
  if constexpr (kCudaBuilt) return cuda::zeroBytes(placeOf(tensor), tensor.bytes(), context);
  throw DeviceUnavailable("setZero: this build has no CUDA");
}

Tensor cloneTensor(const Tensor& source) {
  return copyTo(source, source.device());
}

Tensor copyTo(const Tensor& source, Device device) {
  require(source.defined(), "copyTo: the tensor is undefined");
  Tensor result = Tensor::empty(source.shape(), source.dtype(), device, source.layout());
  copy(source, result);
  return result;
}

std::vector<Tensor> copyTo(std::span<const Tensor> sources, Device device) {
  std::vector<Tensor> copies;
  copies.reserve(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    require(sources[i].defined(), "copyTo: tensor {} is undefined", i);
    copies.push_back(copyTo(sources[i], device));
  }
  return copies;
}

bool shareMemory(const Tensor& a, const Tensor& b) {
  if (a.bytes() == 0 || b.bytes() == 0) return false;
  const std::less<const std::byte*> before;  // also orders pointers into different arrays
  const auto* const beginA = static_cast<const std::byte*>(a.raw());
  const auto* const beginB = static_cast<const std::byte*>(b.raw());
  return a.device() == b.device() && before(beginA, beginB + b.bytes()) && before(beginB, beginA + a.bytes());
}

}  // namespace muster
