#include "muster/core/ops/elementwise.h"

#include "muster/core/ops/accumulate.h"
#include "muster/core/ops/activation.h"
#include "muster/core/ops/axpy.h"
#include "muster/core/ops/dropout.h"
#include "tests/support/arrays.h"
#include "tests/support/devices.h"
#include "tests/support/rounding.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using test::Array;

/// The rule as the header states it, for one element.
double combined(Combination combination, const std::vector<double>& x) {
  double value = x[0];
  for (std::size_t i = 1; i < x.size(); ++i) switch (combination) {
      case Combination::Add:
      case Combination::Average:
        value += x[i];
        break;
      case Combination::Subtract:
        value -= x[i];
        break;
      case Combination::Product:
        value *= x[i];
        break;
      case Combination::Max:
        value = std::max(value, x[i]);
        break;
    }
  return combination == Combination::Average ? value / static_cast<double>(x.size()) : value;
}

/// d combined / d x[input].
double derivative(Combination combination, const std::vector<double>& x, std::size_t input) {
  switch (combination) {
    case Combination::Add:
      return 1;
    case Combination::Subtract:
      return input == 0 ? 1 : -1;
    case Combination::Average:
      return 1 / static_cast<double>(x.size());
    case Combination::Max:
      return static_cast<std::size_t>(std::ranges::max_element(x) - x.begin()) == input ? 1 : 0;
    case Combination::Product: {
      double others = 1;
      for (std::size_t i = 0; i < x.size(); ++i) others *= i == input ? 1 : x[i];
      return others;
    }
  }
  return 0;
}

/// The numbers of element i in all inputs.
std::vector<double> elementOf(const std::vector<Array>& x, std::int64_t i) {
  std::vector<double> values;
  for (const Array& input : x) values.push_back(input.at(i));
  return values;
}

std::vector<Tensor> toTensors(const std::vector<Array>& arrays, Layout layout, Device device) {
  std::vector<Tensor> tensors;
  for (const Array& array : arrays) tensors.push_back(test::toTensor(array, layout, device));
  return tensors;
}

TEST_CASE_ON(
    "combinations and their derivatives agree with the reference, for few inputs and many, in every layout",
    Where, MUSTER_TEST_DEVICES) {
  std::mt19937_64 random(test::freshSeed());
  Context context(Where::device(), {.threads = 2});
  const ContextScope scope(context);
  const Shape shape{3, 5, 2, 7};
  for (const auto& [combination, name] : EnumNames<Combination>::kNames)
    for (const std::size_t count : {1, 2, 3, 128, 129, 300}) {
      if (combination == Combination::Subtract && count != 2) continue;
      CAPTURE(name);
      CAPTURE(count);
      const double far = combination == Combination::Product ? 1.02 : 2;  // products of many stay finite
      std::vector<Array> x;
      for (std::size_t i = 0; i < count; ++i) x.push_back(test::randomArray(shape, random, 0.98, far));
      if (count > 1) x[1].at(3) = x[0].at(3);  // of equal values the first counts
      const Array gradY = test::randomArray(shape, random);
      Array y(shape);
      for (std::int64_t i = 0; i < shape.elements(); ++i) y.at(i) = combined(combination, elementOf(x, i));
      for (const Layout layout : Where::layouts()) {
        CAPTURE(nameOf(layout));
        const auto inputs = toTensors(x, layout, Where::device());
        const Tensor grad = test::toTensor(gradY, layout, Where::device());
        Tensor out = test::nanTensor(shape, layout, Where::device());
        combine(combination, inputs, out, context);
        context.synchronize();
        // Terms and factors are positive, so that the relative error is at most one rounding for each
        // operation.
        const double tolerance = test::roundings(static_cast<double>(count) + 1);
        CHECK(test::maxError(out, y) < tolerance);
        for (const std::size_t input : {std::size_t{0}, count / 2, count - 1}) {
          CAPTURE(input);
          Array gradX(shape);
          for (std::int64_t i = 0; i < shape.elements(); ++i)
            gradX.at(i) = gradY.at(i) * derivative(combination, elementOf(x, i), input);
          Tensor back = test::nanTensor(shape, layout, Where::device());
          combineBackward(combination, inputs, input, grad, back, context);
          context.synchronize();
          CHECK(test::maxError(back, gradX) < tolerance);
        }
      }
    }
}

TEST_CASE_ON("the output may be the first input's memory, and a maximum passes NaN on", Where,
             MUSTER_TEST_DEVICES) {
  const Device device = Where::device();
  Context context(device);
  const auto on = [&](std::initializer_list<float> values) {
    return copyTo(Tensor::of(values, {3}), device);
  };
  Tensor x = on({1, 2, 3});
  const Tensor inputs[] = {x, on({4, 5, 6}), on({7, 8, 9})};
  combine(Combination::Add, inputs, x, context);
  context.synchronize();
  CHECK(test::maxError(x, Array({3}, {12, 15, 18})) == 0);
  addTo(inputs[1], x, context);
  scale(-0.5, x, x, context);
  context.synchronize();
  CHECK(test::maxError(x, Array({3}, {-8, -10, -12})) == 0);
  const Tensor broken[] = {on({test::kNan, 1, 1}), on({1, test::kNan, 1}), on({1, 1, test::kNan})};
  combine(Combination::Max, broken, x, context);
  context.synchronize();
  for (int i = 0; i < 3; ++i) CHECK(std::isnan(test::toArray(x).at(i)));
}

TEST_CASE_ON("ranges of a dimension are copied, and nothing else is written", Where, MUSTER_TEST_DEVICES) {
  const Device device = Where::device();
  std::mt19937_64 random(4);
  Context context(device, {.threads = 2});
  const Array x = test::randomArray({2, 5, 3}, random);
  for (int axis = 0; axis < 3; ++axis) {
    CAPTURE(axis);
    std::vector<std::int64_t> sizes{2, 5, 3};
    sizes[static_cast<std::size_t>(axis)] = 9;
    const Shape shape(sizes);
    const Array before = test::randomArray(shape, random);
    Array expected = before;
    constexpr std::int64_t kFrom = 1, kTo = 6, kCount = 1;
    for (std::int64_t i = 0; i < x.shape.elements(); ++i) {
      std::int64_t place[] = {i / 15, i / 3 % 5, i % 3};
      if (place[axis] < kFrom || place[axis] >= kFrom + kCount) continue;
      place[axis] += kTo - kFrom;
      expected.at((place[0] * shape[1] + place[1]) * shape[2] + place[2]) = x.at(i);
    }
    Tensor y = test::toTensor(before, device);
    copyRange(test::toTensor(x, device), kFrom, y, kTo, kCount, axis, context);
    copyRange(test::toTensor(x, device), 0, y, 0, 0, axis, context);
    context.synchronize();
    CHECK(test::maxError(y, expected) == 0);
  }
}

/// Operations on two tensors, each giving a third of the same shape.
struct Operation {
  std::string_view name;
  std::function<void(const Tensor& a, const Tensor& b, Tensor& y, Context& context)> run;
};
std::vector<Operation> operations() {
  std::vector<Operation> all{
      {"scale", [](auto& a, auto&, auto& y, auto& context) { scale(0.3, a, y, context); }},
      {"sum",
       [](auto& a, auto& b, auto& y, auto& context) {
         sum(std::vector{a, b, a}, y, context);
       }},
      {"axpy",
       [](auto& a, auto& b, auto& y, auto& context) {
         copy(b, y, context);
         axpy(0.3, a, y, context);
       }},
      {"dropout", [](auto& a, auto&, auto& y, auto& context) {
         dropout(a, y, 0.4, RandomStream(7, "dropout", 1), 5, context);
       }}};
  for (const auto& [combination, name] : EnumNames<Combination>::kNames) {
    all.push_back({name, [=](auto& a, auto& b, auto& y, auto& context) {
                     combine(combination, std::vector{a, b}, y, context);
                   }});
    all.push_back({name, [=](auto& a, auto& b, auto& y, auto& context) {
                     combineBackward(combination, std::vector{a, b}, 1, a, y, context);
                   }});
  }
  for (const auto& [activation, name] : EnumNames<Activation>::kNames) {
    all.push_back({name, [=](auto& a, auto&, auto& y, auto& context) {
                     activationForward(activation, a, y, context);
                   }});
    all.push_back({name, [=](auto& a, auto& b, auto& y, auto& context) {
                     activationBackward(activation, a, a, b, y, context);
                   }});
  }
  return all;
}

TEST_CASE_ON("the alignment of tensors changes no bit, and only the result is written", Where,
             MUSTER_TEST_DEVICES) {
  const Device device = Where::device();
  Context context(device);
  std::mt19937_64 random(11);
  for (const Shape& shape : {Shape{1, 1}, Shape{1, 6}, Shape{3, 8}, Shape{7, 149}}) {
    const Tensor a = test::toTensor(test::randomArray(shape, random), device);
    const Tensor b = test::toTensor(test::randomArray(shape, random), device);
    for (const Operation& operation : operations()) {
      Tensor expected = test::nanTensor(shape, device);
      operation.run(a, b, expected, context);
      context.synchronize();
      const auto check = [&](std::int64_t ofA, std::int64_t ofB, std::int64_t ofY) {
        CAPTURE(std::string(operation.name));
        CAPTURE(shape.toString());
        CAPTURE(ofA);
        CAPTURE(ofB);
        CAPTURE(ofY);
        Tensor around = test::nanTensor({shape.elements() + ofY + 5}, device);
        Tensor y = around.slice(ofY, shape);
        operation.run(test::shifted(a, ofA), test::shifted(b, ofB), y, context);
        context.synchronize();
        CHECK(test::sameBits(y, expected));
        const Array got = test::toArray(around);
        for (std::int64_t i = 0; i < around.elements(); ++i)
          if (i < ofY || i >= ofY + shape.elements()) CHECK(std::isnan(got.at(i)));
      };
      for (std::int64_t by = 0; by < 5; ++by) check(by, by, by);
      check(1, 0, 0);
      check(0, 1, 0);
      check(0, 0, 1);
    }
  }
}

TEST_CASE_ON("runs of any length are copied between rows of any length, at any offset", Where,
             MUSTER_TEST_DEVICES) {
  const Device device = Where::device();
  Context context(device);
  std::mt19937_64 random(12);
  struct Run {
    std::int64_t widthX, from, widthY, to, count;
  };
  // First all sizes are multiples of four; then each start or length in turn is not.
  for (const Run& run :
       {Run{12, 4, 16, 8, 8}, Run{12, 4, 16, 8, 7}, Run{12, 3, 16, 8, 8}, Run{12, 4, 16, 7, 8},
        Run{13, 4, 16, 8, 8}, Run{12, 4, 17, 8, 8}, Run{5, 0, 5, 0, 5}}) {
    CAPTURE(run.widthX);
    CAPTURE(run.from);
    CAPTURE(run.widthY);
    CAPTURE(run.to);
    CAPTURE(run.count);
    const Array x = test::randomArray({9, run.widthX}, random);
    Array expected = test::randomArray({9, run.widthY}, random);
    Tensor y = test::toTensor(expected, device);
    for (std::int64_t row = 0; row < 9; ++row)
      for (std::int64_t i = 0; i < run.count; ++i)
        expected.at(row * run.widthY + run.to + i) = x.at(row * run.widthX + run.from + i);
    copyRange(test::toTensor(x, device), run.from, y, run.to, run.count, 1, context);
    context.synchronize();
    CHECK(test::maxError(y, expected) == 0);
  }
}

TEST_CASE("element-wise operations refuse inputs that do not fit by name") {
  Context context;
  Tensor x = Tensor::zeros({2, 3}), y = Tensor::zeros({3, 2});
  const Tensor inputs[] = {x, x, x}, mixed[] = {x, y};
  CHECK_REFUSED(combine(Combination::Subtract, inputs, x, context),
                "combine: subtract takes two inputs, got 3");
  CHECK_REFUSED(combine(Combination::Add, mixed, x, context),
                "combine: an input is float32 [3, 2] on cpu, expected float32 [2, 3] on cpu");
  CHECK_REFUSED(combineBackward(Combination::Add, inputs, 3, x, x, context),
                "combineBackward: there is no input 3, only 3");
  CHECK_THROWS_AS(scale(2, x, y, context), InvalidArgument);
  CHECK_THROWS_AS(copyRange(x, 0, y, 0, 1, 0, context), InvalidArgument);
}

}  // namespace
}  // namespace muster
