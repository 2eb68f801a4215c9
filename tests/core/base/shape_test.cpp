#include "muster/core/base/shape.h"

#include "tests/support/test.h"

namespace muster {
namespace {

using test::thrown;

TEST_CASE("a shape knows its rank, sizes and elements") {
  const Shape shape{2, 3, 4};
  CHECK(shape.rank() == 3);
  CHECK(shape.elements() == 24);
  CHECK(shape[0] == 2);
  CHECK(shape[-1] == 4);
  CHECK(std::vector<std::int64_t>(shape.begin(), shape.end()) == std::vector<std::int64_t>{2, 3, 4});
  CHECK(shape.toString() == "[2, 3, 4]");
}

TEST_CASE("a shape of rank 0 has one element, and a shape with a size of 0 has none") {
  CHECK(Shape().empty());
  CHECK(Shape().elements() == 1);
  CHECK(Shape().toString() == "[]");
  CHECK(Shape{5, 0}.elements() == 0);
  CHECK_FALSE(Shape{0}.empty());
}

TEST_CASE("prepend and dropFirst undo each other") {
  CHECK(Shape{3, 4}.prepend(2) == Shape{2, 3, 4});
  CHECK(Shape{2, 3, 4}.dropFirst() == Shape{3, 4});
  CHECK(Shape{7}.dropFirst() == Shape());
  CHECK(Shape().prepend(7) == Shape{7});
}

TEST_CASE("dropLast leaves the dimensions before the last") {
  CHECK(Shape{2, 3, 4}.dropLast() == Shape{2, 3});
  CHECK(Shape{7}.dropLast() == Shape());
  CHECK_THROWS_AS(Shape().dropLast(), InvalidArgument);
}

TEST_CASE("shapes are equal only if their ranks and sizes are") {
  CHECK(Shape{2, 3} == Shape{2, 3});
  CHECK(Shape{2, 3} != Shape{3, 2});
  CHECK(Shape{2, 3} != Shape{2, 3, 1});
  CHECK(Shape{2, 3, 4}.dropFirst() != Shape{3, 4, 4});
}

TEST_CASE("impossible shapes are refused, and the error names their sizes") {
  CHECK_CONTAINS(thrown<InvalidArgument>([] { Shape{2, -3}; }), "-3");
  CHECK_NOTHROW(Shape{1, 1, 1, 1, 1, 1});
  CHECK_CONTAINS(thrown<InvalidArgument>([] { Shape{1, 1, 1, 1, 1, 1, 1}; }), "7");
  CHECK_THROWS_AS((Shape{1, 1, 1, 1, 1, 1}.prepend(1)), InvalidArgument);
  CHECK_THROWS_AS(Shape().dropFirst(), InvalidArgument);
  const Shape shape{2, 3};
  CHECK_CONTAINS(thrown<InvalidArgument>([&] { shape[2]; }), "[2, 3]");
  CHECK_THROWS_AS(shape[-3], InvalidArgument);
}

}  // namespace
}  // namespace muster
