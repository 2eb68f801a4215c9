#include "muster/core/ops/elementwise.h"

#include "muster/core/ops/accumulate.h"
#include "muster/core/ops/activation.h"
#include "muster/core/ops/axpy.h"
#include "muster/core/ops/dropout.h"
#include "tests/core/ops/test.h"

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

TEST_ON_DEVICES(
    "combinations and their derivatives agree with the reference, for few inputs and many, in every layout") {
  std::mt19937_64 random(test::freshSeed());
  test::Place<Where> on(2);
  const Shape shape{3, 5, 2, 7};
  for (const auto& [combination, name] : EnumNames<Combination>::kNames)
    for (const std::size_t count : {1, 2, 3, 128, 129, 300}) {
      if (combination == Combination::Subtract && count != 2) continue;
      INFO(name, ", count ", count);
      const double far = combination == Combination::Product ? 1.02 : 2;  // products of many stay finite
      std::vector<Array> x;
      for (std::size_t i = 0; i < count; ++i) x.push_back(test::randomArray(shape, random, 0.98, far));
      if (count > 1) x[1].at(3) = x[0].at(3);  // of equal values the first counts
      const Array gradY = test::randomArray(shape, random);
      Array y(shape);
      for (std::int64_t i = 0; i < shape.elements(); ++i) y.at(i) = combined(combination, elementOf(x, i));
      for (const Layout layout : Where::layouts()) {
        CAPTURE(nameOf(layout));
        std::vector<Tensor> inputs;
        for (const Array& input : x) inputs.push_back(on(input, layout));
        Tensor out = on.nan(shape, layout);
        combine(combination, inputs, out, on.context);
        // Terms and factors are positive, so that the relative error is at most one rounding for each
        // operation.
        const double tolerance = test::roundings(static_cast<double>(count) + 1);
        CHECK(test::maxError(on.get(out), y) < tolerance);
        for (const std::size_t input : {std::size_t{0}, count / 2, count - 1}) {
          CAPTURE(input);
          Array gradX(shape);
          for (std::int64_t i = 0; i < shape.elements(); ++i)
            gradX.at(i) = gradY.at(i) * derivative(combination, elementOf(x, i), input);
          Tensor back = on.nan(shape, layout);
          combineBackward(combination, inputs, input, on(gradY, layout), back, on.context);
          CHECK(test::maxError(on.get(back), gradX) < tolerance);
        }
      }
    }
}

TEST_ON_DEVICES("the output may be the first input's memory, and a maximum passes NaN on") {
  test::Place<Where> on;
  const auto of = [&](std::initializer_list<float> values) { return on(Tensor::of(values, {3})); };
  Tensor x = of({1, 2, 3});
  const Tensor inputs[] = {x, of({4, 5, 6}), of({7, 8, 9})};
  combine(Combination::Add, inputs, x, on.context);
  CHECK(test::floatsOf(on.get(x)) == std::vector{12.0f, 15.0f, 18.0f});
  addTo(inputs[1], x, on.context);
  scale(-0.5, x, x, on.context);
  CHECK(test::floatsOf(on.get(x)) == std::vector{-8.0f, -10.0f, -12.0f});
  const Tensor broken[] = {of({test::kNan, 1, 1}), of({1, test::kNan, 1}), of({1, 1, test::kNan})};
  combine(Combination::Max, broken, x, on.context);
  for (const float value : test::floatsOf(on.get(x))) CHECK(std::isnan(value));
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

TEST_ON_DEVICES("the alignment of tensors changes no bit, and only the result is written") {
  test::Place<Where> on;
  std::mt19937_64 random(11);
  for (const Shape& shape : {Shape{1, 1}, Shape{1, 6}, Shape{3, 8}, Shape{7, 149}}) {
    const Tensor a = on(test::randomArray(shape, random)), b = on(test::randomArray(shape, random));
    for (const Operation& operation : operations()) {
      Tensor expected = on.nan(shape);
      operation.run(a, b, expected, on.context);
      const auto check = [&](std::int64_t ofA, std::int64_t ofB, std::int64_t ofY) {
        INFO(std::string(operation.name), ", ", shape.toString(), ", ofA ", ofA, ", ofB ", ofB, ", ofY ",
             ofY);
        Tensor around = on.nan({shape.elements() + ofY + 5});
        Tensor y = around.slice(ofY, shape);
        operation.run(test::shifted(a, ofA), test::shifted(b, ofB), y, on.context);
        CHECK(test::sameBits(on.get(y), expected));
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

TEST_ON_DEVICES("ranges of any length and dimension are copied, at any offset, and nothing else is written") {
  test::Place<Where> on(2);
  std::mt19937_64 random(12);
  struct Range {
    std::int64_t outer, inner;  // sizes before and after the dimension
    int axis;
    Shape x, y;
    std::int64_t from, to, count;
  };
  // In [9, n], first all sizes are multiples of four; then each start or length in turn is not.
  for (const auto& [outer, inner, axis, shapeX, shapeY, from, to, count] :
       std::initializer_list<Range>{{1, 15, 0, {2, 5, 3}, {9, 5, 3}, 1, 6, 1},
                                    {2, 3, 1, {2, 5, 3}, {2, 9, 3}, 1, 6, 1},
                                    {10, 1, 2, {2, 5, 3}, {2, 5, 9}, 1, 6, 1},
                                    {10, 1, 2, {2, 5, 3}, {2, 5, 9}, 0, 0, 0},
                                    {9, 1, 1, {9, 12}, {9, 16}, 4, 8, 8},
                                    {9, 1, 1, {9, 12}, {9, 16}, 4, 8, 7},
                                    {9, 1, 1, {9, 12}, {9, 16}, 3, 8, 8},
                                    {9, 1, 1, {9, 12}, {9, 16}, 4, 7, 8},
                                    {9, 1, 1, {9, 13}, {9, 16}, 4, 8, 8},
                                    {9, 1, 1, {9, 12}, {9, 17}, 4, 8, 8},
                                    {9, 1, 1, {9, 5}, {9, 5}, 0, 0, 5}}) {
    INFO(shapeX.toString(), " to ", shapeY.toString(), ", from ", from, " to ", to, ", count ", count);
    const Array x = test::randomArray(shapeX, random);
    Array expected = test::randomArray(shapeY, random);
    Tensor y = on(expected);
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < count * inner; ++i)
        expected.at((o * shapeY[axis] + to) * inner + i) = x.at((o * shapeX[axis] + from) * inner + i);
    copyRange(on(x), from, y, to, count, axis, on.context);
    CHECK(test::maxError(on.get(y), expected) == 0);
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
