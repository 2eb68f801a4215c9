#include "muster/core/nn/step/input_moments.h"

#include "tests/support/test.h"

namespace muster {
namespace {

using detail::InputMoments;

Tensor tensorOf(const Shape& shape, const std::vector<float>& values) {
  Tensor tensor = Tensor::zeros(shape);
  std::ranges::copy(values, tensor.data<float>());
  return tensor;
}

struct Numbers {
  std::vector<float> shift, scale;
  bool operator==(const Numbers&) const = default;
};

Numbers numbersOf(const InputMoments& moments, NormaliseMethod method, std::int64_t features) {
  Tensor shift = Tensor::zeros({features}), scale = Tensor::zeros({features});
  moments.store(method, shift, scale);
  const auto of = [](const Tensor& t) {
    const auto all = t.span<float>();
    return std::vector<float>(all.begin(), all.end());
  };
  return {of(shift), of(scale)};
}

Numbers standardised(const Shape& example, const Tensor& examples, const Tensor& mask = {}) {
  InputMoments moments(example);
  moments.add(examples, mask);
  return numbersOf(moments, NormaliseMethod::Standardise, example.rank() == 3 ? example[0] : example[-1]);
}

TEST_CASE("rows are standardised by mean and deviation of each column, flags by a half") {
  // Columns: deviation 2; a constant; zeros and ones; constant 0.
  const Tensor rows = tensorOf({2, 4}, {1, 7, 0, 0, 5, 7, 1, 0});
  CHECK(standardised({4}, rows) == Numbers{{3, 7, 0.5f, 0}, {0.5f, 1, 2, 1}});
  const Tensor uneven = tensorOf({4, 1}, {0, 0, 0, 1});
  CHECK(standardised({1}, uneven) == Numbers{{0.25f}, {2}});
  // Numbers, though between 0 and 1 or of magnitude 1; and a small difference at a large offset.
  const Tensor others =
      tensorOf({4, 3}, {0, 1, 1e9f, 0.5f, 1, 1e9f, 0.5f, -1, 1e9f + 128, 1, -1, 1e9f + 128});
  CHECK(standardised({3}, others) ==
        Numbers{{0.5f, 0, 1e9f + 64}, {static_cast<float>(std::sqrt(8.0)), 1, 1.0f / 64}});
}

TEST_CASE("a range maps the smallest value to 0 and the largest to 1; a constant has scale 1") {
  InputMoments moments({2});
  moments.add(tensorOf({3, 2}, {-1, 4, 3, 4, 1, 4}), {});
  CHECK(numbersOf(moments, NormaliseMethod::MinMax, 2) == Numbers{{-1, 4}, {0.25f, 1}});
}

TEST_CASE("images have one mean and deviation for each channel") {
  const Tensor images = tensorOf({2, 2, 1, 2}, {1, 1, 10, 30, 5, 5, 10, 30});
  CHECK(standardised({2, 1, 2}, images) == Numbers{{3, 20}, {0.5f, 0.1f}});
}

TEST_CASE("steps that a mask leaves out do not count") {
  const Tensor sequence = tensorOf({1, 3, 1}, {1, 5, 900}), mask = tensorOf({1, 3}, {1, 1, 0});
  CHECK(standardised({3, 1}, sequence, mask) == Numbers{{3}, {0.5f}});
  InputMoments moments({3, 1});
  CHECK_REFUSED(moments.add(sequence, tensorOf({1, 2}, {1, 1})),
                "the mask of steps is float32 [1, 2] on cpu, and the examples are float32 [1, 3, 1] on cpu");
}

TEST_CASE("the numbers do not depend on the size of batches, for rows and for images") {
  for (const Shape& example : {Shape{3}, Shape{3, 2, 2}}) {
    const std::int64_t size = example.elements(), count = 12;
    std::vector<float> values;
    for (std::int64_t i = 0; i < count * size; ++i)
      values.push_back(1000 + static_cast<float>(std::sin(static_cast<double>(i))));
    const Numbers whole = standardised(example, tensorOf(example.prepend(count), values));
    for (const std::int64_t batch : {1, 3, 4}) {
      InputMoments moments(example);
      for (std::int64_t first = 0; first < count; first += batch)
        moments.add(tensorOf(example.prepend(batch),
                             {values.begin() + first * size, values.begin() + (first + batch) * size}),
                    {});
      CHECK(numbersOf(moments, NormaliseMethod::Standardise, 3) == whole);
    }
  }
}

TEST_CASE("a value that is not finite is refused with its place, and so is a data set without examples") {
  InputMoments moments({2});
  moments.add(tensorOf({1, 2}, {1, 2}), {});
  CHECK_REFUSED(moments.add(tensorOf({2, 2}, {1, 2, 3, std::numeric_limits<float>::infinity()}), {}),
                "example 2 has the value inf at position 1, both counted from 0 in [2]");
  Tensor shift = Tensor::zeros({2}), scale = Tensor::zeros({2});
  CHECK_REFUSED(InputMoments({2}).store(NormaliseMethod::MinMax, shift, scale),
                "the data set has no examples");
}

}  // namespace
}  // namespace muster
