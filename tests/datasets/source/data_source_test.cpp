// Data described as in a run file: read, checked, and loaded as iterators.
#include "muster/datasets/source/data_source.h"

#include <numeric>

#include "muster/datasets/gaussian_mixtures.h"
#include "muster/datasets/source/load_data.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using test::thrown;

TEST_CASE("a table described in JSON is loaded, and the rows that are held out are not trained on") {
  const test::TemporaryDirectory directory;
  std::string rows = "size,colour,kind\n";
  for (int i = 0; i < 10; ++i) rows += std::to_string(0.5 * i * i) + (i % 2 == 0 ? ",red,a\n" : ",blue,b\n");
  test::writeFile(directory / "rows.csv", rows);
  const auto source = DataSource::parse(
      R"({"type": "csv", "train": ")" + (directory / "rows.csv").string() +
      R"(", "leaveOut": ["colour"], "validationExamples": 4, "batch": 3, "shuffle": false})");
  CHECK(source.label.empty());  // the last column
  LoadedData data = loadData(source);
  CHECK(data.train->examples() == 6);
  CHECK(data.validation->examples() == 4);
  CHECK(data.test == nullptr);
  CHECK(data.description.classes == std::vector<std::string>{"a", "b"});
  float sum = 0;  // of the sizes in both parts: (0 + 1 + 4 + ... + 81) / 2
  for (auto* const part : {data.train.get(), data.validation.get()}) {
    Batch batch;
    part->reset(0);
    while (part->next(batch)) {
      const Tensor sizes = batch.features.front().gathered();
      for (std::int64_t row = 0; row < batch.examples(); ++row)  // a number, and its rank beside it
        sum += sizes.rows(row, row + 1).span<float>()[0];
    }
  }
  CHECK(sum == 142.5f);
  CHECK(DataSource::parse(source.toJson()).toJson() == source.toJson());
}

TEST_CASE("a field of a data source that is unknown, missing or out of range is named") {
  const auto refused = [](std::string_view json) {
    return thrown<InvalidArgument>([&] { DataSource::parse(json); });
  };
  CHECK_CONTAINS(refused(R"({"type": "csv", "train": "a.csv", "colums": []})"), "columns");
  CHECK(refused(R"({"type": "csv"})") == "data.train: is missing, and data of type csv need it");
  CHECK(refused(R"({"type": "mnist", "batch": 0})") == "data.batch must be between 1 and 65536, got 0");
  CHECK_CONTAINS(refused("{}"), "type");
  CHECK(thrown<InvalidArgument>([] { loadData({.type = "minst"}); }) ==
        "data.type: there is no type \"minst\"; the nearest is mnist, of mnist, fashion, kmnist, cifar10, "
        "mnistOrGenerated, generated, mixtures, idx, csv, images, safetensors");
}

TEST_CASE(
    "the examples of mixtures depend on seed and part alone, and a longer set begins with a shorter one") {
  const auto few = gaussianMixtures(7, true, 50), more = gaussianMixtures(7, true, 4000);
  const auto other = gaussianMixtures(8, true, 50), test = gaussianMixtures(7, false, 50);
  int same = 0;
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < 50; ++i) {
    CHECK(few->label(i) == more->label(i));
    const auto a = few->image(i), b = more->image(i);
    CHECK(std::equal(a.begin(), a.end(), b.begin()));
    same += std::equal(a.begin(), a.end(), other->image(i).begin());
    same += std::equal(a.begin(), a.end(), test->image(i).begin());
  }
  CHECK(same == 0);
  for (std::int64_t i = 0; i < 4000; ++i)
    for (const double pixel : more->image(i)) {
      sum += pixel;
      squares += pixel * pixel;
    }
  const double count = 4000.0 * 128, mean = sum / count;
  // Mean 127.5; deviation 36 sqrt(1 + 0.35^2) = 38.1. The centres' mean of 32 x 128 has an error of
  // 36 * 0.35 / 64 = 0.2.
  CHECK(std::abs(mean - 127.5) < 1);
  CHECK(std::abs(std::sqrt(squares / count - mean * mean) - 38.14) < 1);
}

}  // namespace
}  // namespace muster
