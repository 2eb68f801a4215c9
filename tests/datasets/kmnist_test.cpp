#include "muster/datasets/kmnist.h"

#include "muster/datasets/mnist_format.h"
#include "tests/datasets/idx_bytes.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using Names = std::vector<std::string>;

// That files of other counts, labels or sums are refused, and how files are found and downloaded, is tested
// with MNIST and Fashion-MNIST, which are read by the same functions.

TEST_CASE("plain files of the published sizes are read, with the test images in the order of the file") {
  const test::TemporaryDirectory directory;
  std::string pixels(std::size_t{10000} * 784, '\0'), labels(10000, '\0');
  for (std::size_t i = 0; i < 10000; ++i) {
    pixels[i * 784] = static_cast<char>(i % 256);
    labels[i] = static_cast<char>(i % 10);
  }
  std::filesystem::create_directories(directory / "kmnist");
  test::writeFile(directory / "kmnist/t10k-images-idx3-ubyte", test::idx({10000, 28, 28}, pixels));
  test::writeFile(directory / "kmnist/t10k-labels-idx1-ubyte", test::idx({10000}, labels));
  KmnistDataSetIterator data(4, false, 1, {.directory = directory.path(), .allowDownload = false});
  CHECK(data.examples() == 10000);
  CHECK(data.description()->classes == Names{"o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"});
  Batch batch;
  data.reset(1);
  REQUIRE(data.next(batch));
  CHECK(batch.features.front().value.shape() == Shape{4, 1, 28, 28});
  CHECK(batch.features.front().value.span<float>()[3 * 784] == 3.0f / 255.0f);
  CHECK(std::ranges::equal(batch.labels.front().value.span<std::int64_t>(), std::array{0, 1, 2, 3}));
}

TEST_CASE("KMNIST is published at its address with its checksums, and one of the sets in MNIST's format") {
  const auto& kmnist = KmnistDataSetIterator::kPublished;
  CHECK(kmnist.address == "https://codh.rois.ac.jp/kmnist/dataset/kmnist/");
  CHECK(std::string_view(kmnist.addressVariable) == "MUSTER_KMNIST_URL");
  CHECK((kmnist.sumOf == SumOf::Packed));
  Names sums;
  for (const auto& [name, sum] : kmnist.files) sums.push_back(fmt::format("{} {}", name, sum));
  CHECK(sums == Names{"train-images-idx3-ubyte.gz bdb82020997e1d708af4cf47b453dcf7",
                      "train-labels-idx1-ubyte.gz e144d726b3acfaa3e44228e80efcd344",
                      "t10k-images-idx3-ubyte.gz 5c965bf0a639b31b8f53240b1b52f4d7",
                      "t10k-labels-idx1-ubyte.gz 7320c461ea6c1c855c0b718fb2a4b134"});
  const auto sets = mnistFormatSets();
  for (const char* name : {"mnist", "fashion-mnist", "kmnist"})
    CHECK(std::ranges::count(sets, name, &PublishedSet::name) == 1);
  CHECK(std::ranges::find(sets, "kmnist", &PublishedSet::name)->files.data() == kmnist.files.data());
}

}  // namespace
}  // namespace muster
