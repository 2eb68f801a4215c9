// Operations on tensors of more than 2^31 elements, where 32-bit indices would overflow. Tensors are zero
// except in windows at the beginning, around 2^31 and at the end.
#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cmath>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/ops/activation.h"
#include "muster/core/ops/axpy.h"
#include "muster/core/ops/elementwise.h"
#include "muster/core/ops/gather.h"
#include "muster/core/ops/merge.h"
#include "muster/core/ops/update.h"
#include "tests/bench/command_line.h"

namespace {

using namespace muster;
using namespace muster::bench;

constexpr std::int64_t kWindow = 1000;

class Large {
 public:
  Large(Device device, std::int64_t elements)
      : context_(device),
        n_(elements),
        x_(Tensor::empty({elements}, DType::Float32, device)),
        y_(Tensor::empty({elements}, DType::Float32, device)) {
    const std::int64_t middle = elements > kMiddle ? kMiddle - kWindow / 2 : elements / 2 - kWindow / 2;
    windows_ = {0, middle, elements - kWindow};
  }

  int failures() const { return failures_; }

  void run() {
    check(
        "setZero and copy", [&] { fill(y_, 3); }, [](double v) { return 3 * v; });
    check(
        "axpy", [&] { axpy(2, x_, y_, context_); }, [](double v) { return 5 * v; });
    check(
        "scale", [&] { scale(0.5f, y_, y_, context_); }, [](double v) { return 2.5 * v; });
    check(
        "ReLU", [&] { activationForward(Activation::ReLU, y_, y_, context_); },
        [](double v) { return std::max(0.0, 2.5 * v); });
    check(
        "its gradient",
        [&] {
          fill(y_, 1);
          activationForward(Activation::ReLU, y_, y_, context_);
          Tensor gradient = y_;
          activationBackward(Activation::ReLU, Tensor(), y_, x_, gradient, context_);
        },
        [](double v) { return std::max(0.0, v); });
    check(
        "weightedMean",
        [&] {
          fill(y_, 3);
          fill(x_, 1);
          Tensor none;
          const std::vector<Tensor> replicas{x_, y_};
          const std::vector<double> weights{1, 1};
          weightedMean(replicas, weights, none, 0, n_, context_);
        },
        [](double v) { return 2 * v; });
    check(
        "updateOnce of plain descent",
        [&] {
          fill(x_, 1);
          fill(y_, 3);
          const UpdateRange all{.begin = 0, .end = n_};
          updateOnce({}, {y_, x_, {}}, {&all, 1}, context_);
        },
        [](double v) { return 2 * v; });
    norm();
    rows();
  }

 private:
  static constexpr std::int64_t kMiddle = std::int64_t{1} << 31;

  /// Small integers and their negatives.
  static double valueAt(std::int64_t i) { return static_cast<double>(i % 17 - 8); }

  void fill(Tensor& tensor, double factor) {
    setZero(tensor, context_);
    Tensor window = Tensor::empty({kWindow});
    for (const std::int64_t begin : windows_) {
      for (std::int64_t i = 0; i < kWindow; ++i)
        window.data<float>()[i] = static_cast<float>(factor * valueAt(begin + i));
      Tensor there = tensor.slice(begin, {kWindow});
      context_.synchronize();
      copy(copyTo(window, tensor.device()), there, context_);
      context_.synchronize();
    }
  }

  void told(const char* name, bool good, const std::string& detail = "") {
    fmt::print("{:<32} {}{}\n", name, good ? "right" : "WRONG", detail);
    if (!good) ++failures_;
  }

  /// Does some work that leaves y = expected(valueAt(i)) in the windows and 0 elsewhere.
  template <typename Expected>
  void check(const char* name, const std::function<void()>& work, Expected expected) {
    try {
      if (first_) fill(x_, 1);
      first_ = false;
      work();
      context_.synchronize();
      double squares = 0;
      for (const std::int64_t begin : windows_) {
        const Tensor got = copyTo(y_.slice(begin, {kWindow}), Device::cpu());
        for (std::int64_t i = 0; i < kWindow; ++i) {
          const double wanted = expected(valueAt(begin + i));
          squares += wanted * wanted;
          if (got.data<float>()[i] != static_cast<float>(wanted))
            return told(name, false,
                        fmt::format(": element {} is {}, not {}", begin + i, got.data<float>()[i], wanted));
        }
      }
      // Sums of squares of small integers and halves are exact, so this shows that nothing else was written.
      const double all = squaredNorm(y_, 0, n_, context_);
      told(name, all == squares,
           all == squares ? "" : fmt::format(": the squares add up to {}, not {}", all, squares));
    } catch (const Error& error) {
      told(name, false, fmt::format(": {}", error.what()));
    }
  }

  void norm() {
    fill(x_, 1);
    const double last = squaredNorm(x_, n_ - 1, n_, context_), wanted = valueAt(n_ - 1) * valueAt(n_ - 1);
    told("squaredNorm of the last element", last == wanted);
  }

  /// Rows whose elements begin after 2^31.
  void rows() {
    constexpr std::int64_t kColumns = 1000;
    const std::int64_t count = n_ / kColumns;
    const Tensor source = Tensor::view(x_.raw(), {count, kColumns}, DType::Float32, x_.device());
    Tensor which = Tensor::empty({2}, DType::Int64);
    which.data<std::int64_t>()[0] = 0;
    which.data<std::int64_t>()[1] = count - 1;
    Tensor target = Tensor::zeros({2, kColumns}, DType::Float32, x_.device());
    gatherRows(source, copyTo(which, x_.device()), target, context_);
    context_.synchronize();
    const Tensor got = copyTo(target, Device::cpu());
    bool good = true;
    for (std::int64_t i = 0; i < kColumns; ++i) {
      const std::int64_t at = (count - 1) * kColumns + i;
      good = good && got.data<float>()[i] == static_cast<float>(valueAt(i)) &&
             got.data<float>()[kColumns + i] == (at >= n_ - kWindow ? static_cast<float>(valueAt(at)) : 0.0f);
    }
    told("gatherRows", good);
  }

  Context context_;
  std::int64_t n_;
  Tensor x_, y_;
  std::vector<std::int64_t> windows_;
  bool first_ = true;
  int failures_ = 0;
};

}  // namespace

int main(int argc, char** argv) try {
  namespace po = boost::program_options;
  std::string device = "cuda:0";
  std::int64_t elements = (std::int64_t{1} << 31) + 4099;
  po::options_description description("Whether operations on very large tensors are right");
  auto add = description.add_options();
  add("device", po::value(&device), "which [cuda:0]");
  add("elements", po::value(&elements), "of a tensor, at least 4000 [2^31 + 4099]");
  po::variables_map given;
  if (!readCommandLine(argc, argv, description, given)) return 0;
  if (elements < 4 * kWindow) throw std::invalid_argument("elements must be at least 4000");
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const Device where = Device::parse(device);
  fmt::print("Two tensors of {} elements, {:.1f} GB each\n\n", elements,
             4e-9 * static_cast<double>(elements));
  try {
    Large large(where, elements);
    large.run();
    return large.failures() == 0 ? 0 : 1;
  } catch (const OutOfMemory& error) {
    fmt::print("skipped: {}\n", error.what());
    return 0;
  }
} catch (const std::exception& error) {
  fmt::print(stderr, "device_large: {}\n", error.what());
  return 1;
}
