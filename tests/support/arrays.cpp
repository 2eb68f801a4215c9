#include "tests/support/arrays.h"
#include "muster/core/base/random.h"

#include <cmath>
#include <iostream>

namespace muster::test {
namespace {

/// The tensor itself, or its copy on the CPU.
Tensor onCpu(const Tensor& tensor) {
  return tensor.device().isCpu() ? tensor : copyTo(tensor, Device::cpu());
}

/// The index of element (n, c, h, w) in the storage of images of these channels, rows and columns.
std::int64_t imageIndex(Layout layout, std::int64_t channels, std::int64_t height, std::int64_t width,
                        std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
  const std::int64_t blocks = (channels + 15) / 16;
  switch (layout) {
    case Layout::RowMajor:
      return ((n * channels + c) * height + h) * width + w;
    case Layout::ChannelsLast:
      return ((n * height + h) * width + w) * channels + c;
    case Layout::ChannelBlocks:
      return (((n * blocks + c / 16) * height + h) * width + w) * 16 + c % 16;
    case Layout::SampleBlocks:
      return (((n / 16 * channels + c) * height + h) * width + w) * 16 + n % 16;
  }
  return 0;
}

/// Calls f(row-major index, storage index) for each element.
template <typename F>
void forEachElement(const Shape& shape, Layout layout, F f) {
  const std::int64_t elements = shape.elements();
  if (layout == Layout::RowMajor) {
    for (std::int64_t i = 0; i < elements; ++i) f(i, i);
    return;
  }
  const std::int64_t batch = shape[0], channels = shape[1], height = shape[2], width = shape[3];
  std::int64_t i = 0;
  for (std::int64_t n = 0; n < batch; ++n)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t h = 0; h < height; ++h)
        for (std::int64_t w = 0; w < width; ++w)
          f(i++, imageIndex(layout, channels, height, width, n, c, h, w));
}

/// The largest |array - expected| / unit(expected).
template <typename Unit>
double largestError(const Array& array, const Array& expected, Unit unit) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (!(array.shape == expected.shape)) return infinity;
  double worst = 0;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const double error = std::abs(array.values[i] - expected.values[i]) / unit(expected.values[i]);
    if (std::isnan(error)) return infinity;
    worst = std::max(worst, error);
  }
  return worst;
}

}  // namespace

std::uint64_t freshSeed() {
  static const std::uint64_t seed = [] {
    const char* const text = std::getenv("MUSTER_TEST_SEED");
    const std::uint64_t drawn = text ? std::strtoull(text, nullptr, 10) : std::random_device{}();
    std::cerr << "Random inputs from MUSTER_TEST_SEED=" << drawn << std::endl;
    return drawn;
  }();
  return seed;
}

Array randomArray(const Shape& shape, std::mt19937_64& random, double low, double high) {
  std::uniform_real_distribution<double> uniform(low, high);
  Array array(shape);
  for (double& value : array.values) value = static_cast<float>(uniform(random));
  return array;
}

std::int64_t storageIndex(const Shape& shape, Layout layout, std::int64_t n, std::int64_t c, std::int64_t h,
                          std::int64_t w) {
  return imageIndex(layout, shape[1], shape[2], shape[3], n, c, h, w);
}

Array toArray(const Tensor& anywhere) {
  const Tensor tensor = onCpu(anywhere);
  Array array(tensor.shape());
  forEachElement(tensor.shape(), tensor.layout(),
                 [&](std::int64_t i, std::int64_t stored) { array.at(i) = valueAt(tensor, stored); });
  return array;
}

Tensor toTensor(const Array& array, Layout layout, Device device) {
  Tensor tensor = Tensor::zeros(array.shape, DType::Float32, Device::cpu(), layout);
  forEachElement(array.shape, layout, [&](std::int64_t i, std::int64_t stored) {
    tensor.data<float>()[stored] = static_cast<float>(array.at(i));
  });
  return device.isCpu() ? tensor : copyTo(tensor, device);
}

Tensor nanTensor(const Shape& shape, Layout layout, Device device) {
  Tensor tensor = Tensor::empty(shape, DType::Float32, Device::cpu(), layout);
  std::ranges::fill(tensor.span<float>(), std::numeric_limits<float>::quiet_NaN());
  return device.isCpu() ? tensor : copyTo(tensor, device);
}

double euclideanDistance(const Tensor& x, const Tensor& y) {
  const Array ofX = toArray(x), ofY = toArray(y);
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < ofX.values.size(); ++i) {
    difference += std::pow(ofX.values[i] - ofY.values[i], 2);
    norm += std::pow(ofY.values[i], 2);
  }
  return std::sqrt(difference / norm);
}

Tensor filled(const Shape& shape, float value) {
  Tensor tensor = Tensor::empty(shape);
  std::ranges::fill(tensor.span<float>(), value);
  return tensor;
}

Tensor randomTensor(std::int64_t n, std::string_view name, DType dtype, double low, double high) {
  const RandomStream random(7, name);
  const Tensor tensor = Tensor::empty({n}, dtype);
  for (std::int64_t i = 0; i < n; ++i)
    setValue(tensor, i, low + (high - low) * random.uniform(static_cast<std::uint64_t>(i)));
  return tensor;
}

double valueAt(const Tensor& tensor, std::int64_t i) {
  switch (tensor.dtype()) {
    case DType::Float32:
      return tensor.data<float>()[i];
    case DType::Float64:
      return tensor.data<double>()[i];
    case DType::UInt8:
      return tensor.data<std::uint8_t>()[i];
    case DType::Int64:
      return static_cast<double>(tensor.data<std::int64_t>()[i]);
  }
  return 0;
}

void setValue(const Tensor& tensor, std::int64_t i, double value) {
  if (tensor.dtype() == DType::Float64)
    tensor.data<double>()[i] = value;
  else
    tensor.data<float>()[i] = static_cast<float>(value);
}

Tensor shifted(const Tensor& tensor, std::int64_t by) {
  const Shape& shape = tensor.shape();
  Tensor moved = Tensor::empty({shape.elements() + by}, DType::Float32, tensor.device()).slice(by, shape);
  copy(tensor, moved);
  return moved;
}

double maxError(const Array& array, const Array& expected) {
  return largestError(array, expected, [](double exact) { return 1 + std::abs(exact); });
}

double maxError(const Tensor& tensor, const Array& expected) {
  return maxError(toArray(tensor), expected);
}

double maxDifference(const Array& array, const Array& expected) {
  return largestError(array, expected, [](double) { return 1; });
}

double maxDifference(const Tensor& tensor, const Array& expected) {
  return maxDifference(toArray(tensor), expected);
}

bool paddingIsZero(const Tensor& anywhere) {
  const Tensor tensor = onCpu(anywhere);
  std::vector<bool> used(static_cast<std::size_t>(tensor.storage()));
  forEachElement(tensor.shape(), tensor.layout(),
                 [&](std::int64_t, std::int64_t stored) { used[static_cast<std::size_t>(stored)] = true; });
  const auto values = tensor.span<float>();
  for (std::size_t i = 0; i < used.size(); ++i)
    if (!used[i] && values[i] != 0) return false;
  return true;
}

bool sameBits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && a.bytes() == b.bytes() &&
         (a.bytes() == 0 || std::memcmp(onCpu(a).raw(), onCpu(b).raw(), a.bytes()) == 0);
}

Array numericGradient(const std::function<Array(const Array&)>& f, const Array& x, const Array& weights,
                      double step) {
  const auto weighted = [&](const Array& at) {
    const Array y = f(at);
    double sum = 0;
    for (std::size_t i = 0; i < y.values.size(); ++i) sum += weights.values[i] * y.values[i];
    return sum;
  };
  Array gradient(x.shape);
  Array moved = x;
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const auto across = [&](double distance) {
      moved.values[i] = x.values[i] + distance;
      const double above = weighted(moved);
      moved.values[i] = x.values[i] - distance;
      return above - weighted(moved);
    };
    gradient.values[i] = (8 * across(step) - across(2 * step)) / (12 * step);
    moved.values[i] = x.values[i];
  }
  return gradient;
}

}  // namespace muster::test
