#include "muster/datasets/mnist.h"

#include "muster/datasets/kmnist.h"
#include "tests/datasets/idx_bytes.h"
#include "tests/support/environment.h"
#include "tests/support/http_server.h"
#include "tests/support/skip.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using test::Environment;
using test::HttpReply;
using test::HttpServer;
using test::thrown;
using Counts = std::array<int, 10>;

constexpr const char* kNoData = "MUSTER_DATA_DIR, the directory of the real MNIST, is not set";

Counts countLabels(const ImageSet& set) {
  Counts counts{};
  for (std::int64_t i = 0; i < set.size(); ++i) ++counts[static_cast<std::size_t>(set.label(i))];
  return counts;
}

std::vector<std::int64_t> labelsIn(const Batch& batch) {
  const auto labels = batch.labels.front().value.span<std::int64_t>();
  return {labels.begin(), labels.end()};
}

TEST_CASE("MNIST's training images are complete") {
  if (!test::realDataDir()) return test::skip(kNoData);
  MnistDataSetIterator train(128, true, 1);
  CHECK(train.examples() == 60000);
  // Images of each digit: LeCun's page and every paper since.
  CHECK(countLabels(*train.set()) == Counts{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949});

  Batch batch;
  double sum = 0, squares = 0;
  int batches = 0;
  for (train.reset(0); train.next(batch); ++batches)
    for (const double x : batch.features.front().value.span<float>()) {
      sum += x;
      squares += x * x;
    }
  CHECK(batches == 469);
  CHECK(batch.features.front().value.shape() == Shape{96, 1, 28, 28});
  // The usual mean and standard deviation for normalisation: 0.1307 and 0.3081.
  const double mean = sum / (60000.0 * 784);
  CHECK(std::abs(mean - 0.1307) < 5e-5);
  CHECK(std::abs(std::sqrt(squares / (60000.0 * 784) - mean * mean) - 0.3081) < 5e-5);
}

TEST_CASE("MNIST's test images keep the order of the file") {
  if (!test::realDataDir()) return test::skip(kNoData);
  MnistDataSetIterator data(10, false, 1);
  CHECK(data.examples() == 10000);
  CHECK(data.description()->classes ==
        std::vector<std::string>{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"});
  CHECK(countLabels(*data.set()) == Counts{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009});
  Batch batch;
  for (const int epoch : {0, 1}) {
    data.reset(epoch);
    REQUIRE(data.next(batch));
    CHECK(labelsIn(batch) == std::vector<std::int64_t>{7, 2, 1, 0, 4, 1, 4, 9, 5, 9});
  }
}

TEST_CASE("MNIST's training images are shuffled by seed and epoch, within the limit") {
  if (!test::realDataDir()) return test::skip(kNoData);
  const auto labelsOf = [](std::uint64_t seed, std::int64_t epoch) {
    MnistDataSetIterator data(100, true, seed, {.limit = 100});
    Batch batch;
    data.reset(epoch);
    REQUIRE(data.next(batch));
    CHECK(data.examples() == 100);
    return labelsIn(batch);
  };
  const auto first = labelsOf(1, 0);
  for (auto other : {labelsOf(1, 1), labelsOf(2, 0)}) {
    CHECK(other != first);
    CHECK(std::ranges::is_permutation(other, first));
  }
}

TEST_CASE("MNIST's files can be downloaded, and are downloaded once") {
  const char* directory = test::realDataDir();
  if (!directory) return test::skip(kNoData);
  const test::TemporaryDirectory cache;
  const std::string source = directory;
  HttpServer server(
      [&](const std::string& path, int) { return HttpReply::whole(test::readFile(source + path)); });
  const Environment noDirectory("MUSTER_DATA_DIR", std::nullopt), direct("no_proxy", "127.0.0.1"),
      own("MUSTER_CACHE_DIR", cache.path().string()), address("MUSTER_MNIST_URL", server.address());
  for (int i = 0; i < 2; ++i) CHECK(MnistDataSetIterator(10, false).examples() == 10000);
  CHECK(server.requests() == 2);
  CHECK(std::filesystem::exists(cache / "mnist/t10k-labels-idx1-ubyte.gz"));
}

TEST_CASE("MNIST's files are not accepted as Fashion-MNIST") {
  if (!test::realDataDir()) return test::skip(kNoData);
  const test::TemporaryDirectory cache;
  const Environment own("MUSTER_CACHE_DIR", cache.path().string());
  CHECK_CONTAINS(
      thrown<DownloadError>([] { FashionMnistDataSetIterator(10, false, 1, {.allowDownload = false}); }),
      "fashion-mnist");
}

/// An environment without data, and an empty data directory.
struct Offline {
  test::TemporaryDirectory directory;
  Environment data{"MUSTER_DATA_DIR", directory.path().string()};
  Environment cache{"MUSTER_CACHE_DIR", (directory / "cache").string()};
  DataOptions options{.allowDownload = false};
};

template <typename Data>
void checkPlainFiles(const std::string& folder, const std::string& firstClass) {
  const Offline offline;
  const auto images = offline.directory / (folder + "/t10k-images-idx3-ubyte"),
             labels = offline.directory / (folder + "/t10k-labels-idx1-ubyte");
  std::filesystem::create_directories(images.parent_path());
  const auto refusal = [&] { return thrown<FileError>([&] { Data(10, false, 1, offline.options); }); };
  test::writeFile(images, test::idx({1, 28, 28}, std::string(784, 'x')));
  CHECK_CONTAINS(refusal(), "[10000, 28, 28]");
  std::string pixels(std::size_t{10000} * 784, '\0'), classes(10000, '\x09');
  for (std::size_t i = 0; i < 10000; ++i) pixels[i * 784] = static_cast<char>(i % 256);
  test::writeFile(images, test::idx({10000, 28, 28}, pixels));
  classes[1] = '\x0A';
  test::writeFile(labels, test::idx({10000}, classes));
  CHECK_CONTAINS(refusal(), "label 10 of example 1");
  classes[1] = '\x01';
  test::writeFile(labels, test::idx({10000}, classes));
  Data data(4, false, 1, offline.options);
  CHECK(data.examples() == 10000);
  CHECK(data.description()->classes.front() == firstClass);
  Batch batch;
  data.reset(1);
  REQUIRE(data.next(batch));
  CHECK(labelsIn(batch) == std::vector<std::int64_t>{9, 1, 9, 9});
  CHECK(batch.features.front().value.shape() == Shape{4, 1, 28, 28});
  CHECK(batch.features.front().value.span<float>()[3 * 784] == 3.0f / 255.0f);
}

TEST_CASE("plain Fashion-MNIST and KMNIST are accepted if their headers and labels are right") {
  checkPlainFiles<FashionMnistDataSetIterator>("fashion-mnist", "T-shirt/top");
  checkPlainFiles<KmnistDataSetIterator>("kmnist", "o");
}

TEST_CASE(
    "a file that is not MNIST is refused by its checksum; a missing one names its address and the cause") {
  const Offline offline;
  const Environment direct("no_proxy", "127.0.0.1");
  const auto address = test::deadAddress();
  const DataOptions options{.address = address, .download = {.attempts = 1}};
  const auto text = thrown<DownloadError>([&] { MnistDataSetIterator(10, true, 1, options); });
  CHECK_CONTAINS(text, address + "train-images-idx3-ubyte.gz");
  CHECK_CONTAINS(text, "name their directory in the environment variable MUSTER_DATA_DIR");
  CHECK_CONTAINS(thrown<DownloadError>([&] { MnistDataSetIterator(10, true, 1, offline.options); }),
                 "https://ossci-datasets.s3.amazonaws.com/mnist/train-images-idx3-ubyte.gz");
  const auto file = offline.directory / "t10k-images-idx3-ubyte";
  test::writeFile(file, test::idx({1, 28, 28}, std::string(784, 'x')));
  const auto wrong = thrown<FileError>([&] { MnistDataSetIterator(10, false, 1, offline.options); });
  CHECK_CONTAINS(wrong, file.string());
  CHECK_CONTAINS(wrong, "2646ac647ad5339dbf082846283269ea");
}

}  // namespace
}  // namespace muster
