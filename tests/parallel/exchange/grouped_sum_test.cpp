#include "muster/parallel/exchange/grouped_sum.h"

#include <doctest/doctest.h>

#include <vector>

#include "muster/core/device/context.h"

using namespace muster;

namespace {

/// Groups of terms with factors, over tensors of the same values.
struct Groups {
  std::vector<std::vector<Term>> all;
  std::vector<Term> terms = {};

  std::span<const Term> operator()(std::size_t group, Slice piece) {
    terms.clear();
    for (const auto& [factor, values] : all[group]) terms.push_back({factor, part(values, piece)});
    return terms;
  }
};

Tensor filled(std::int64_t elements, double value, DType type = DType::Float64) {
  Tensor values = Tensor::zeros({elements}, type);
  for (std::int64_t i = 0; i < elements; ++i)
    if (type == DType::Float64)
      values.data<double>()[i] = value;
    else
      values.data<float>()[i] = static_cast<float>(value);
  return values;
}

}  // namespace

TEST_CASE("each group is rounded before the groups are added up") {
  // 1 + 2^-53 rounds to 1. In one sum, 2^-53 + 2^-53 is added to 1 exactly.
  Context context;
  const Tensor one = filled(3, 1), tiny = filled(3, 0x1p-53);
  struct Case {
    Groups groups;
    double keep, sum;
  };
  for (const Case& c :
       {Case{{{{{1, one}}, {{1, tiny}, {1, tiny}}}}, 0, 1 + 0x1p-52},
        Case{{{{{1, one}, {1, tiny}}, {}, {{1, tiny}}}}, 0, 1}, Case{{{{{0.5, one}}}}, 0.25, 2.5}}) {
    CAPTURE(c.sum);
    const Tensor target = filled(3, 8);
    addGroups("sum", c.groups.all.size(), c.groups, c.keep, target, {1, 3}, context);
    CHECK(target.data<double>()[0] == 8);  // before the slice
    CHECK(target.data<double>()[1] == c.sum);
    CHECK(target.data<double>()[2] == c.sum);
  }
}

TEST_CASE("long slices are added up piece by piece, and an overflow names its element") {
  Context context;
  constexpr std::int64_t kElements = 2500;
  const Tensor values = filled(kElements, 1), into = filled(kElements, 0, DType::Float32);
  addGroups("sum", 1, Groups{{{{2, values}}}}, 0, into, {0, kElements}, context);
  for (std::int64_t i = 0; i < kElements; ++i) REQUIRE(into.data<float>()[i] == 2);
  values.data<double>()[1500] = 1.5e308;
  std::int64_t element = -1;
  try {
    addGroups("sum", 1, Groups{{{{2, values}}}}, 0, into, {0, kElements}, context);
  } catch (const NonFiniteResult& error) {
    element = error.element();
  }
  CHECK(element == 1500);
}
