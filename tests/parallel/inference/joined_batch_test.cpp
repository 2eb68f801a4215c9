#include "muster/parallel/inference/joined_batch.h"

#include "tests/support/fake_trainer.h"
#include "tests/support/one_block_model.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

using Values = std::vector<float>;

/// One row for each value.
Batch batchWith(const Values& values) {
  Batch batch;
  Tensor x = Batch::ensure(batch.features, "x", {static_cast<std::int64_t>(values.size()), 1});
  std::ranges::copy(values, x.data<float>());
  return batch;
}

Values valuesOf(const Tensor& rows) {
  return {rows.data<float>(), rows.data<float>() + rows.elements()};
}

/// Gives its input, and remembers how many rows it got each time.
struct Counting final : OneBlockModel {
  void output(const Batch& batch, Tensor& out) override {
    out = cloneTensor(batch.features.front().value);
    rows.push_back(batch.examples());
  }
  std::vector<std::int64_t> rows;
};

/// Gives its input's mask, in the memory of `out` if that has room.
struct Masking final : OneBlockModel {
  void output(const Batch& batch, Tensor& out) override {
    const Tensor& mask = batch.masks.front().value;
    out.resize(mask.shape(), mask.dtype());
    copy(mask, out);
  }
};

/// Gives one row too few, or a number.
struct Short final : OneBlockModel {
  void output(const Batch& batch, Tensor& out) override {
    out = batch.examples() > 1 ? Tensor::zeros({batch.examples() - 1, 1}) : Tensor::zeros(Shape{});
  }
};

}  // namespace

TEST_CASE("a model is compiled for at most eight sizes") {
  using Sizes = std::vector<std::int64_t>;
  CHECK(paddedSizes(32) == Sizes{1, 2, 4, 8, 12, 16, 28, 32});
  CHECK(paddedSizes(1) == Sizes{1});
  CHECK(paddedSizes(3) == Sizes{1, 2, 3});
  CHECK(paddedSizes(8) == Sizes{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(paddedSizes(64) == Sizes{1, 4, 8, 16, 24, 32, 56, 64});
}

TEST_CASE("parts of batches are joined in order, padded with zeros, and each gets its rows") {
  const Batch a = batchWith({1, 2, 3}), b = batchWith({4, 5, 6, 7});
  Counting model;
  JoinedBatch joined(/*limit=*/32);
  joined.join(std::vector<JoinedBatch::Part>{{&a, 1, 3}, {&b, 0, 4}, {&a, 0, 1}});
  CHECK(valuesOf(joined.batch().features.front().value) == Values{2, 3, 4, 5, 6, 7, 1, 0});
  joined.compute(model);
  CHECK(model.rows == std::vector<std::int64_t>{8});
  CHECK(valuesOf(joined.output(0, 2)) == Values{2, 3});
  CHECK(valuesOf(joined.output(2, 7)) == Values{4, 5, 6, 7, 1});
  joined.join(std::vector<JoinedBatch::Part>{{&b, 3, 4}});  // its memory shrinks and is used again
  joined.compute(model);
  CHECK(valuesOf(joined.output(0, 1)) == Values{7});
  CHECK(model.rows.back() == 1);
  const float* const memory = joined.batch().features.front().value.data<float>();
  joined.join(std::vector<JoinedBatch::Part>{{&b, 0, 4}, {&b, 0, 4}});
  joined.join(std::vector<JoinedBatch::Part>{{&b, 0, 4}, {&a, 0, 3}});
  CHECK(valuesOf(joined.batch().features.front().value) == Values{4, 5, 6, 7, 1, 2, 3, 0});
  CHECK(joined.batch().features.front().value.data<float>() == memory);
}

TEST_CASE("masks are joined with the features, and an output stays when the next one is computed") {
  Batch masked = batchWith({1, 2, 3});
  Tensor mask = Batch::ensure(masked.masks, "features", {3, 1});
  std::ranges::copy(Values{5, 6, 7}, mask.data<float>());
  Masking model;
  JoinedBatch joined(/*limit=*/2);
  joined.join(std::vector<JoinedBatch::Part>{{&masked, 0, 3}});
  joined.compute(model);
  const Tensor last = joined.output(2, 3);
  CHECK(valuesOf(joined.output(0, 2)) == Values{5, 6});
  CHECK(valuesOf(last) == Values{7});
  joined.join(std::vector<JoinedBatch::Part>{{&masked, 1, 3}, {&masked, 0, 1}});
  joined.compute(model);
  CHECK(valuesOf(joined.output(0, 3)) == Values{6, 7, 5});
  CHECK(valuesOf(last) == Values{7});
  const Batch plain = batchWith({1});
  joined.join(std::vector<JoinedBatch::Part>{{&plain, 0, 1}});
  CHECK(joined.batch().masks.empty());
}

TEST_CASE("more rows than the limit are computed in pieces, whose outputs are joined") {
  Values many(10);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<float>(i);
  const Batch batch = batchWith(many);
  Counting model;
  JoinedBatch joined(/*limit=*/4);
  joined.join(std::vector<JoinedBatch::Part>{{&batch, 0, 10}});
  joined.compute(model);
  CHECK(model.rows == std::vector<std::int64_t>{4, 4, 2});
  CHECK(valuesOf(joined.output(0, 10)) == many);
  CHECK(valuesOf(joined.output(3, 5)) == Values{3, 4});  // across two pieces
}

TEST_CASE("rows are padded by an eighth at most, or computed in two parts if that is allowed") {
  const std::tuple<std::size_t, bool, std::vector<std::int64_t>> rows[] = {
      {18, false, {28}},   {18, true, {16, 2}},       {32, true, {32}},
      {31, true, {32}},    {28, true, {28}},          {25, true, {28}},
      {24, true, {16, 8}}, {19, true, {16, 4}},       {17, true, {16, 1}},
      {14, true, {16}},    {13, true, {12, 1}},       {11, true, {12}},
      {7, true, {8}},      {5, true, {4, 1}},         {3, true, {2, 1}},
      {1, true, {1}},      {70, true, {32, 32, 4, 2}}};
  for (const auto& [examples, two, sizes] : rows) {
    INFO("examples ", examples, ", two ", two);
    const Batch batch = batchWith(Values(examples));
    Counting model, unlimited;
    JoinedBatch whole(/*limit=*/0), joined(/*limit=*/32, two);
    whole.join(std::vector<JoinedBatch::Part>{{&batch, 0, static_cast<std::int64_t>(examples)}});
    whole.compute(unlimited);
    CHECK(unlimited.rows == std::vector{static_cast<std::int64_t>(examples)});
    joined.join(std::vector<JoinedBatch::Part>{{&batch, 0, static_cast<std::int64_t>(examples)}});
    joined.compute(model);
    CHECK(model.rows == sizes);
  }
}

TEST_CASE("a model whose output has not a row for each example is refused") {
  const Batch batch = batchWith({1, 2, 3});
  Short model;
  JoinedBatch joined(0);
  joined.join(std::vector<JoinedBatch::Part>{{&batch, 0, 3}});
  CHECK_REFUSED(joined.compute(model),
                "output: the model's output [2, 1] has not a row for each of 3 examples");
  joined.join(std::vector<JoinedBatch::Part>{{&batch, 0, 1}});
  CHECK_REFUSED(joined.compute(model), "output: the model's output [] has not a row for each of 1 examples");
}
