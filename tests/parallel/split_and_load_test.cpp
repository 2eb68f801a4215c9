#include "muster/parallel/split_and_load.h"

#include <numeric>

#include "muster/core/base/error.h"
#include "tests/support/devices.h"

using namespace muster;

namespace {

const std::vector<Device> kOne(1), kTwo(2), kThree(3), kFour(4);

Tensor counted(const Shape& shape) {
  Tensor tensor = Tensor::empty(shape);
  std::iota(tensor.data<float>(), tensor.data<float>() + tensor.elements(), 0.0f);
  return tensor;
}

std::vector<std::int64_t> rowsOf(const std::vector<Tensor>& pieces) {
  std::vector<std::int64_t> rows;
  for (const auto& piece : pieces) rows.push_back(piece.shape()[0]);
  return rows;
}

Batch batchOf(std::int64_t examples) {
  Batch batch;
  batch.stamp = {.sequence = 4, .epoch = 2, .iteration = 9, .firstExample = 40};
  Batch::ensure(batch.features, "images", {examples, 3}) = counted({examples, 3});
  Tensor& labels = Batch::ensure(batch.labels, "classes", {examples}, DType::Int64);
  std::iota(labels.data<std::int64_t>(), labels.data<std::int64_t>() + examples, 0);
  Batch::ensure(batch.masks, "weights", {examples}) = counted({examples});
  return batch;
}

}  // namespace

TEST_CASE("splitAndLoad gives even parts, in order, in the tensor's own memory") {
  const Tensor tensor = counted({6, 2});
  const auto pieces = splitAndLoad(tensor, kThree);
  REQUIRE(rowsOf(pieces) == std::vector<std::int64_t>{2, 2, 2});
  for (std::size_t d = 0; d < 3; ++d) {
    CHECK(pieces[d].shape() == Shape{2, 2});
    CHECK(pieces[d].raw() == tensor.data<float>() + 4 * d);
  }
  CHECK(splitAndLoad(tensor, kOne)[0].shape() == tensor.shape());
}

TEST_CASE("splitAndLoad gives uneven parts only if allowed, with the larger ones first") {
  const Tensor thirty = counted({30, 1}), two = counted({2, 1});
  CHECK_THROWS_WITH_AS(
      splitAndLoad(thirty, kFour),
      "splitAndLoad: 30 rows do not divide by 4 devices; evenSplit = false allows parts that differ by one",
      InvalidArgument);
  const auto pieces = splitAndLoad(thirty, kFour, false);
  CHECK(rowsOf(pieces) == std::vector<std::int64_t>{8, 8, 7, 7});
  CHECK(pieces[3].data<float>()[6] == 29);
  CHECK(rowsOf(splitAndLoad(thirty, kThree, false)) == std::vector<std::int64_t>{10, 10, 10});
  CHECK_THROWS_AS(splitAndLoad(two, kThree), InvalidArgument);
  CHECK(rowsOf(splitAndLoad(two, kThree, false)) == std::vector<std::int64_t>{1, 1});
}

TEST_CASE("splitAndLoad's parts cover all rows once, over rows and devices") {
  for (std::int64_t rows = 1; rows <= 20; ++rows)
    for (std::size_t devices = 1; devices <= 8; ++devices) {
      INFO("rows ", rows, ", devices ", devices);
      const auto pieces = splitAndLoad(counted({rows}), std::vector<Device>(devices), false);
      float next = 0;
      for (const auto& piece : pieces)
        for (const float row : piece.span<float>()) CHECK(row == next++);
      CHECK(next == static_cast<float>(rows));
      CHECK(pieces.size() == std::min<std::size_t>(devices, static_cast<std::size_t>(rows)));
      CHECK(pieces.front().shape()[0] - pieces.back().shape()[0] <= 1);
    }
}

TEST_CASE("splitAndLoad of a batch splits features, labels and masks, and advances the stamp") {
  const auto pieces = splitAndLoad(batchOf(5), kTwo, false);
  REQUIRE(pieces.size() == 2);
  CHECK(pieces[0].examples() == 3);
  const Batch& last = pieces[1];
  CHECK(last.examples() == 2);
  CHECK(fmt::format("{} from {}, {} from {}, {} {}", last.features[0].name,
                    last.features[0].value.data<float>()[0], last.labels[0].name,
                    last.labels[0].value.data<std::int64_t>()[0], last.masks[0].name,
                    last.masks[0].value.data<float>()[1]) == "images from 9, classes from 3, weights 4");
  CHECK(pieces[0].stamp.firstExample == 40);
  const BatchStamp& stamp = last.stamp;
  CHECK(fmt::format("{} {} {} {}", stamp.sequence, stamp.epoch, stamp.iteration, stamp.firstExample) ==
        "4 2 9 43");
}

TEST_CASE("splitAndLoad refuses tensors that it cannot split by name") {
  CHECK_THROWS_WITH_AS(splitAndLoad(counted({4}), {}), "splitAndLoad: there are no devices", InvalidArgument);
  CHECK_THROWS_WITH_AS(splitAndLoad(counted({0, 2}), kTwo), "splitAndLoad: there are no rows to split",
                       InvalidArgument);
  CHECK_THROWS_WITH_AS(splitAndLoad(Tensor(), kTwo), "splitAndLoad: an undefined tensor has no rows",
                       InvalidArgument);
  CHECK_THROWS_WITH_AS(splitAndLoad(Batch{}, kTwo), "splitAndLoad: there are no rows to split",
                       InvalidArgument);
  Batch batch = batchOf(4);
  batch.labels[0].value = Tensor::zeros({3}, DType::Int64);
  CHECK_THROWS_WITH_AS(
      splitAndLoad(batch, kTwo),
      "splitAndLoad: the batch has 4 examples, but its tensor \"classes\" is int64 [3] on cpu",
      InvalidArgument);
  const std::vector<Device> devices{Device::cpu(), Device::cuda(99)};
  CHECK_THROWS_AS(splitAndLoad(counted({4}), devices), DeviceUnavailable);
}

TEST_CASE_ON("splitAndLoad copies the parts for a GPU there", Where, test::OnGpu) {
  const Tensor whole = counted({4, 2});
  const auto pieces = splitAndLoad(whole, std::vector{Device::cpu(), Device::cuda(0)});
  CHECK(pieces[0].raw() == whole.raw());
  CHECK(pieces[1].device() == Device::cuda(0));
  const Tensor back = copyTo(pieces[1], Device::cpu());
  for (int i = 0; i < 4; ++i) CHECK(back.data<float>()[i] == whole.data<float>()[4 + i]);
}
