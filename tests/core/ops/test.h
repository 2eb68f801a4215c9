#pragma once

// What most tests of operations need.

#include "tests/support/arrays.h"
#include "tests/support/devices.h"
#include "tests/support/rounding.h"
#include "tests/support/test.h"

namespace muster::test {

/// A test's device: a context on it, which is entered, tensors for it, and results from it.
template <typename Where>
struct Place {
  explicit Place(int threads = 1) : context(Where::device(), Where::options(threads)), scope(context) {}
  Tensor operator()(const Array& array, Layout layout = Layout::RowMajor) const {
    return toTensor(array, layout, Where::device());
  }
  /// Undefined tensors stay so.
  Tensor operator()(const Tensor& tensor) const {
    return tensor.defined() ? copyTo(tensor, Where::device()) : tensor;
  }
  /// An output, which is NaN until it is written.
  Tensor nan(const Shape& shape, Layout layout = Layout::RowMajor) const {
    return nanTensor(shape, layout, Where::device());
  }
  /// A result on the CPU, once the device has finished its work.
  Tensor get(const Tensor& result) {
    context.synchronize();
    return copyTo(result, Device::cpu());
  }

  Context context;
  ContextScope scope;
};

}  // namespace muster::test
