#pragma once

#include <random>

#include "muster/core/tensor/tensor.h"
#include "tests/support/standard.h"

namespace muster::test {

/// Numbers in float64, row-major: the references' type.
struct Array {
  Shape shape;
  std::vector<double> values;

  explicit Array(const Shape& s) : Array(s, std::vector<double>(static_cast<std::size_t>(s.elements()))) {}
  Array(const Shape& s, std::vector<double> v) : shape(s), values(std::move(v)) {
    for (int axis = 1; axis < s.rank() && axis < 4; ++axis) sizes_[axis] = s[axis];
  }

  double& at(std::int64_t i) { return values[static_cast<std::size_t>(i)]; }
  double at(std::int64_t i) const { return values[static_cast<std::size_t>(i)]; }
  double& at(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
    return at(indexOf(n, c, h, w));
  }
  double at(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    return at(indexOf(n, c, h, w));
  }

 private:
  std::int64_t indexOf(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    return ((n * sizes_[1] + c) * sizes_[2] + h) * sizes_[3] + w;
  }

  std::int64_t sizes_[4]{};  // sizes of the shape, for loops over all elements
};

/// The seed of a test program's random inputs: MUSTER_TEST_SEED, or a new one for each run. The first call
/// prints it, so that it is known after a crash or a hang. `./run test --seeds` runs the programs that call
/// this.
std::uint64_t freshSeed();

/// Uniform in [low, high), each a float32.
Array randomArray(const Shape& shape, std::mt19937_64& random, double low = -1, double high = 1);

/// Reads a tensor of any layout and element type. The device's work must be finished, here and below.
Array toArray(const Tensor& tensor);
/// As float32, in any layout, padding zero.
Tensor toTensor(const Array& array, Layout layout = Layout::RowMajor, Device device = Device::cpu());
/// Float32, with NaN in every element and all padding: an output before it is written.
Tensor nanTensor(const Shape& shape, Layout layout = Layout::RowMajor, Device device = Device::cpu());

/// On a device, row-major.
inline Tensor toTensor(const Array& array, Device device) {
  return toTensor(array, Layout::RowMajor, device);
}
inline Tensor nanTensor(const Shape& shape, Device device) {
  return nanTensor(shape, Layout::RowMajor, device);
}
/// |x - y| / |y|, of Euclidean norms.
double euclideanDistance(const Tensor& x, const Tensor& y);
/// Each element `value`, float32.
Tensor filled(const Shape& shape, float value);
/// [n] uniform in [low, high), float32 or float64; `name` chooses the numbers.
Tensor randomTensor(std::int64_t n, std::string_view name, DType dtype = DType::Float32, double low = -1,
                    double high = 1);

/// Element i in the memory of a tensor on the CPU.
double valueAt(const Tensor& tensor, std::int64_t i);
/// For float32 and float64.
void setValue(const Tensor& tensor, std::int64_t i, double value);

/// The elements of a float32 tensor on the CPU.
inline std::vector<float> floatsOf(const Tensor& tensor) {
  return {tensor.span<float>().begin(), tensor.span<float>().end()};
}

/// A copy of the tensor whose memory begins `by` elements after an allocation; float32, RowMajor.
Tensor shifted(const Tensor& tensor, std::int64_t by);

/// The index of element (n, c, h, w) in the storage of a layout.
std::int64_t storageIndex(const Shape& shape, Layout layout, std::int64_t n, std::int64_t c, std::int64_t h,
                          std::int64_t w);

/// The largest |tensor - expected| / (1 + |expected|); infinite where shapes differ or one of both is NaN.
double maxError(const Tensor& tensor, const Array& expected);
double maxError(const Array& array, const Array& expected);

/// The largest |tensor - expected|; infinite where shapes differ or one of both is NaN.
double maxDifference(const Tensor& tensor, const Array& expected);
double maxDifference(const Array& array, const Array& expected);

/// Whether everything that the layout pads is zero.
bool paddingIsZero(const Tensor& tensor);

/// Whether both have the same bits, padding included.
bool sameBits(const Tensor& a, const Tensor& b);

/// d(sum of weights * f(x)) / dx by differences between four places, the outer ones two steps away: the error
/// is step^4 / 30 times the fifth derivative, plus rounding of 1e-16 / step times the sum.
Array numericGradient(const std::function<Array(const Array&)>& f, const Array& x, const Array& weights,
                      double step = 1e-3);

}  // namespace muster::test
