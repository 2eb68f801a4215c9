#include "muster/datasets/cifar10.h"

#include "tests/datasets/gzip.h"
#include "tests/datasets/tar_bytes.h"
#include "tests/support/environment.h"
#include "tests/support/test.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using test::Environment;
using test::thrown;

constexpr std::int64_t kRecord = 3073;
constexpr std::int64_t kFileBytes = 10000 * kRecord;

/// A record whose red, green and blue bytes begin at three different numbers and count up.
std::string record(int label, int red, int green, int blue) {
  std::string bytes(1, static_cast<char>(label));
  for (const int begin : {red, green, blue})
    for (int i = 0; i < 1024; ++i) bytes += static_cast<char>((begin + i) % 256);
  return bytes;
}

/// A file as long as a published one: `beginning`, then zeros, which take no space on the disk.
void writeBatch(const fs::path& path, const std::string& beginning = "", std::int64_t bytes = kFileBytes) {
  fs::create_directories(path.parent_path());
  test::writeFile(path, beginning);
  fs::resize_file(path, static_cast<std::uintmax_t>(bytes));
}

/// An environment without data, and an empty data directory.
struct OfflineCifar {
  test::TemporaryDirectory directory;
  Environment data{"MUSTER_DATA_DIR", directory.path().string()};
  Environment cache{"MUSTER_CACHE_DIR", (directory / "cache").string()};
  Environment address{"MUSTER_CIFAR10_URL", std::nullopt};
  Environment direct{"no_proxy", "127.0.0.1"};
  DataOptions options{.allowDownload = false};

  std::string refusal(bool train = false) const {
    return thrown<FileError>([&] { Cifar10DataSetIterator(10, train, 1, options); });
  }
};

TEST_CASE("records of CIFAR-10 become images of three planes, with their labels") {
  const test::TemporaryDirectory directory;
  const auto one = directory / "one.bin", two = directory / "two.bin.gz";
  test::writeFile(one, record(3, 0, 100, 200) + record(9, 7, 8, 9));
  test::writeFile(two, test::gzip(record(0, 50, 60, 70)));
  const auto set = readCifar10(std::vector{one, two});
  REQUIRE(set->size() == 3);
  CHECK(set->imageShape() == Shape{3, 32, 32});
  CHECK(set->description().classes == std::vector<std::string>{"airplane", "automobile", "bird", "cat",
                                                               "deer", "dog", "frog", "horse", "ship",
                                                               "truck"});
  CHECK(set->part(std::vector<std::int64_t>{1})->description() == set->description());
  for (const auto& [image, label] : {std::pair(0, 3), {1, 9}, {2, 0}}) CHECK(set->label(image) == label);
  const auto first = set->image(0);
  CHECK(std::array{first[0], first[1023], first[1024]} == std::array<std::uint8_t, 3>{0, 255, 100});
  CHECK(first[2048 + 32] == 232);  // blue, the second row
  CHECK(set->image(2)[3071] == (70 + 1023) % 256);
  CHECK_THROWS_AS(readCifar10({}), InvalidArgument);
}

TEST_CASE("a file of other lengths or labels is refused, and the error names both lengths or the record") {
  const test::TemporaryDirectory directory;
  const auto path = directory / "broken.bin";
  const auto whole = record(1, 0, 0, 0);
  const std::string records = " bytes are no whole number of records of 3073 bytes";
  for (const auto& [bytes, problem] :
       {std::pair<std::string, std::string>{whole + "x", "its 3074" + records},
        {whole.substr(1), "its 3072" + records},
        {"", "its 0" + records},
        {whole + record(2, 0, 0, 0) + record(10, 0, 0, 0), "record 2 has label 10, but labels are 0 to 9"}}) {
    test::writeFile(path, bytes);
    CHECK_CONTAINS(thrown<FileError>([&] { readCifar10(std::vector{path}); }),
                   path.string() + ": " + problem);
  }
}

TEST_CASE("the published files are found in either folder or the directory itself") {
  for (const std::string folder : {"cifar-10", "cifar-10-batches-bin", "."}) {
    CAPTURE(folder);
    const OfflineCifar offline;
    const auto place = offline.directory.path() / folder;
    for (int i = 1; i <= 5; ++i)
      writeBatch(place / ("data_batch_" + std::to_string(i) + ".bin"), record(i, 255, 0, 51));
    writeBatch(place / "test_batch.bin", record(7, 255, 0, 51) + record(8, 0, 0, 0));
    Cifar10DataSetIterator train(100, true, 1, offline.options), test(2, false, 1, offline.options);
    CHECK(train.examples() == 50000);
    for (int i = 0; i < 5; ++i) CHECK(train.set()->label(i * 10000) == i + 1);
    CHECK(test.examples() == 10000);
    Batch batch;
    REQUIRE(test.next(batch));  // in the order of the file
    const Tensor& features = batch.features.front().value;
    CHECK(features.shape() == Shape{2, 3, 32, 32});
    const float* const pixels = features.data<float>();
    CHECK(std::array{pixels[0], pixels[1024], pixels[2048]} == std::array{1.0f, 0.0f, 51.0f / 255.0f});
    CHECK(std::ranges::equal(batch.labels.front().value.span<std::int64_t>(), std::array{7, 8}));
  }
}

TEST_CASE("training images are shuffled by epoch, within the limit") {
  OfflineCifar offline;
  std::string records;
  for (int i = 0; i < 100; ++i) records += record(i % 10, i, i, i);
  for (int i = 1; i <= 5; ++i)
    writeBatch(offline.directory / ("data_batch_" + std::to_string(i) + ".bin"), i == 1 ? records : "");
  offline.options.limit = 100;
  Cifar10DataSetIterator data(100, true, 1, offline.options);
  CHECK(data.examples() == 100);
  std::set<std::vector<std::int64_t>> orders;
  for (const std::int64_t epoch : {0, 0, 1}) {
    Batch batch;
    data.reset(epoch);
    REQUIRE(data.next(batch));
    const auto labels = batch.labels.front().value.span<std::int64_t>();
    orders.emplace(labels.begin(), labels.end());
  }
  CHECK(orders.size() == 2);
}

TEST_CASE("a published file that has another length or is missing is refused") {
  const OfflineCifar offline;
  const auto path = offline.directory / "test_batch.bin";
  writeBatch(path, "", kFileBytes - kRecord);  // whole records, but too few
  CHECK_CONTAINS(offline.refusal(), path.string());
  CHECK_CONTAINS(offline.refusal(), "its 30726927 bytes are not the 30730000 of 10000 records of 3073");
  writeBatch(path, "", kFileBytes + 1);
  CHECK_CONTAINS(offline.refusal(), "its 30730001 bytes");
  writeBatch(offline.directory / "data_batch_1.bin");
  CHECK_CONTAINS(offline.refusal(true), "data_batch_2.bin: is missing beside");
  auto labels = std::string(4 * kRecord, '\0');
  labels.back() = '\x0A';  // a pixel, which may be anything
  labels += '\xFF';
  writeBatch(path, labels);
  CHECK_CONTAINS(offline.refusal(), "test_batch.bin: record 4 has label 255");
}

TEST_CASE("the files inside CIFAR-10's archive are read; one with another checksum is refused") {
  const OfflineCifar offline;
  const auto path = offline.directory / "cifar-10" / "cifar-10-binary.tar";  // unpacked: it has no known sum
  fs::create_directories(path.parent_path());
  const auto archive = [](std::string records, std::size_t bytes) {
    records.resize(bytes);
    return test::tarEntry("cifar-10-batches-bin/", "", '5') +
           test::tarEntry("cifar-10-batches-bin/readme.html", "words") +
           test::tarEntry("cifar-10-batches-bin/test_batch.bin", records) + test::tarEnd();
  };
  test::writeFile(path, archive(record(6, 1, 2, 3), kFileBytes));
  const Cifar10DataSetIterator test(10, false, 1, offline.options);
  CHECK(test.examples() == 10000);
  CHECK(test.set()->label(0) == 6);
  CHECK(test.set()->image(0)[2048] == 3);
  CHECK_CONTAINS(offline.refusal(true), "cifar-10-binary.tar: the archive does not hold data_batch_1.bin");
  test::writeFile(path, archive("", kRecord));
  CHECK_CONTAINS(offline.refusal(), "cifar-10-binary.tar/cifar-10-batches-bin/test_batch.bin: its 3073");
  test::writeFile(path, archive("", kFileBytes).substr(0, 100000));
  CHECK_CONTAINS(offline.refusal(), "truncated tar archive");

  fs::remove(path);
  CHECK_CONTAINS(thrown<DownloadError>([&] { Cifar10DataSetIterator(10, true, 1, offline.options); }),
                 "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz");
  test::writeFile(offline.directory / "cifar-10-binary.tar.gz",
                  test::gzip(test::tarEntry("test_batch.bin", "x") + test::tarEnd()));
  CHECK_CONTAINS(offline.refusal(), "cifar-10-binary.tar.gz: wrong checksum");
  CHECK_CONTAINS(offline.refusal(), "c32a1d4ab5d03f1284b67883e8d87530");
}

}  // namespace
}  // namespace muster
