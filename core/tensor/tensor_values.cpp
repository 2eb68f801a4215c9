// Looking at a tensor's elements: at, argmax and printing.
#include <algorithm>
#include <cmath>
#include <ostream>

#include "muster/core/base/error.h"
#include "muster/core/tensor/tensor.h"

namespace muster {
namespace {

constexpr std::int64_t kMostElements = 1000;  // more are shortened
constexpr std::int64_t kEdge = 3;             // elements shown at each end of a shortened dimension
constexpr std::size_t kLineLength = 80;

/// Calls f with a pointer to the elements.
template <typename F>
auto withElements(const Tensor& tensor, F f) {
  switch (tensor.dtype()) {
    case DType::Float32:
      return f(tensor.data<float>());
    case DType::Float64:
      return f(tensor.data<double>());
    case DType::UInt8:
      return f(tensor.data<std::uint8_t>());
    case DType::Int64:
      break;
  }
  return f(tensor.data<std::int64_t>());
}

Tensor onCpu(const Tensor& tensor) {
  return tensor.device().isCpu() ? tensor : copyTo(tensor, Device::cpu());
}

/// Writes the elements of a tensor on the CPU as nested lists.
class ValuesWriter {
 public:
  explicit ValuesWriter(const Tensor& tensor) : tensor_(tensor), all_(tensor.elements() <= kMostElements) {
    write(0, 0);  // finds the widest element
    text_.clear();
    aligned_ = true;
    write(0, 0);
  }

  std::string take() { return std::move(text_); }

 private:
  std::string element(std::int64_t at) const {
    return withElements(tensor_, [at](const auto* elements) {
      if constexpr (std::integral<std::remove_cvref_t<decltype(*elements)>>)
        return fmt::format("{}", elements[at]);
      else
        return fmt::format("{:.6g}", elements[at]);
    });
  }

  void put(const std::string& element, std::size_t indent) {
    const std::size_t line = text_.size() - (text_.rfind('\n') + 1);  // npos + 1 is 0
    if (aligned_ && line > indent && line + width_ + 1 > kLineLength) {
      text_.back() = '\n';  // in place of the space after the comma
      text_.append(indent, ' ');
    }
    if (aligned_)
      text_.append(width_ - element.size(), ' ');
    else
      width_ = std::max(width_, element.size());
    text_ += element;
  }

  /// Writes the part of dimensions from `axis` on that begins at element `begin`.
  void write(int axis, std::int64_t begin) {
    const Shape& shape = tensor_.shape();
    if (axis == shape.rank()) return put(element(begin), static_cast<std::size_t>(axis));
    const std::int64_t size = shape[axis];
    std::int64_t stride = 1;
    for (int i = axis + 1; i < shape.rank(); ++i) stride *= shape[i];
    const bool last = axis + 1 == shape.rank();
    const auto next = [&] {  // an element in the row, or a list below
      text_ += ',';
      text_ += last ? " " : std::string(static_cast<std::size_t>(shape.rank() - axis - 1), '\n');
      if (!last) text_.append(static_cast<std::size_t>(axis + 1), ' ');
    };
    text_ += '[';
    for (std::int64_t i = 0; i < size; ++i) {
      if (i > 0) next();
      if (!all_ && size > 2 * kEdge && i == kEdge) {
        text_ += "...";
        next();
        i = size - kEdge;
      }
      write(axis + 1, begin + i * stride);
    }
    text_ += ']';
  }

  const Tensor& tensor_;
  const bool all_;
  bool aligned_ = false;
  std::size_t width_ = 0;
  std::string text_;
};

}  // namespace

std::int64_t Tensor::positionOf(std::initializer_list<std::int64_t> index) const {
  const auto refuse = [&](std::string_view why) {
    std::string text;
    for (const auto i : index) text += fmt::format("{}{}", text.empty() ? "" : ", ", i);
    throw InvalidArgument(fmt::format("at({}): {} {}", text, toString(), why));
  };
  if (!device_.isCpu()) refuse("is not on the CPU; copyTo copies it there");
  if (layout_ != Layout::RowMajor) refuse("is not in row-major order");
  if (static_cast<int>(index.size()) != shape_.rank()) refuse("has another number of dimensions");
  std::int64_t position = 0;
  int axis = 0;
  for (const auto i : index) {
    const std::int64_t size = shape_[axis++];
    if (i < 0 || i >= size) refuse("has no such element; indices count from 0");
    position = position * size + i;
  }
  return position;
}

Tensor argmax(const Tensor& x) {
  const auto& shape = x.shape();
  require(x.defined() && x.layout() == Layout::RowMajor && shape.rank() > 0 && shape[-1] > 0,
          "argmax: {} has no rows of elements in its last dimension", x.toString());
  const Tensor values = onCpu(x);
  Tensor result = Tensor::empty(shape.dropLast(), DType::Int64);
  const std::int64_t columns = shape[-1];
  withElements(values, [&](const auto* elements) {
    for (auto& best : result.span<std::int64_t>()) {
      best = 0;
      for (std::int64_t i = 1; i < columns; ++i)
        if (!(elements[i] <= elements[best]) && !(elements[best] != elements[best])) best = i;
      elements += columns;
    }
  });
  return result;
}

std::string valuesText(const Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != Layout::RowMajor) return tensor.toString();
  return ValuesWriter(onCpu(tensor)).take() + "\n" + tensor.toString();
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << valuesText(tensor);
}

}  // namespace muster
