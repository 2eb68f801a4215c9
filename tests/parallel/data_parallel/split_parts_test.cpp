#include "muster/parallel/data_parallel/split.h"

#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

std::string toText(const std::vector<Part>& parts) {
  std::string text;
  for (const auto& [begin, size] : parts) text += fmt::format("{}+{} ", begin, size);
  return text;
}

/// Element i is i.
Tensor counted(const Shape& shape) {
  Tensor all = Tensor::empty(shape);
  for (std::int64_t i = 0; i < all.elements(); ++i) all.data<float>()[i] = static_cast<float>(i);
  return all;
}

std::vector<float> valuesOf(const Tensor& t) {
  return {t.data<float>(), t.data<float>() + t.elements()};
}

}  // namespace

TEST_CASE("the first parts are longer by one, and no part is empty") {
  CHECK(toText(splitEvenly(7, 3)) == "0+3 3+2 5+2 ");
  CHECK(toText(splitEvenly(6, 3)) == "0+2 2+2 4+2 ");
  CHECK(toText(splitEvenly(2, 3)) == "0+1 1+1 ");
  CHECK(toText(splitEvenly(0, 3)) == "");
}

TEST_CASE("a part is cut out of any dimension, and put back") {
  const Tensor whole = counted({2, 3, 2});
  Context context;
  Tensor rows, columns;
  scatterPart(whole, 0, {1, 1}, rows, context);
  CHECK(rows.shape() == Shape{1, 3, 2});
  CHECK(valuesOf(rows) == std::vector<float>{6, 7, 8, 9, 10, 11});
  scatterPart(whole, 1, {1, 2}, columns, context);
  CHECK(columns.shape() == Shape{2, 2, 2});
  CHECK(valuesOf(columns) == std::vector<float>{2, 3, 4, 5, 8, 9, 10, 11});
  Tensor into = Tensor::zeros({2, 3, 2});
  gatherPart(columns, 1, {1, 2}, into, context);
  CHECK(valuesOf(into) == std::vector<float>{0, 0, 2, 3, 4, 5, 0, 0, 8, 9, 10, 11});
}

TEST_CASE("a part that is not within the tensor, or of another shape, is refused") {
  Tensor whole = counted({2, 3});
  Context context;
  Tensor shard;
  CHECK(thrown<InvalidArgument>([&] {
          scatterPart(whole, 1, {2, 2}, shard, context);
        }).ends_with("has no [2, 4) along dimension 1"));
  CHECK(thrown<InvalidArgument>([&] {
          scatterPart(whole, 2, {0, 1}, shard, context);
        }).ends_with("has no [0, 1) along dimension 2"));
  shard = Tensor::zeros({2, 2});
  CHECK(thrown<InvalidArgument>([&] {
          gatherPart(shard, 1, {0, 1}, whole, context);
        }).find("is not [0, 1) of ") != std::string::npos);
}

TEST_CASE("the examples' dimension is moved to the front, and back") {
  const Tensor sequences = counted({3, 2, 2});  // [T, N, F]
  Tensor first, back;
  moveExamples(sequences, 1, 0, first);
  CHECK(first.shape() == Shape{2, 3, 2});
  CHECK(valuesOf(first) == std::vector<float>{0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11});
  moveExamples(first, 0, 1, back);
  CHECK(back.shape() == Shape{3, 2, 2});
  CHECK(valuesOf(back) == valuesOf(sequences));
  CHECK(withSize({3, 2, 2}, 1, 5) == Shape{3, 5, 2});
}
