// The images of data sets by their names.
#include "muster/datasets/source/named_images.h"

#include "muster/datasets/gaussian_mixtures.h"
#include "tests/datasets/idx_bytes.h"
#include "tests/support/environment.h"
#include "tests/support/http_server.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using test::idx;
using test::thrown;

/// Files with the names and the form of MNIST, but three images to train and two to test with.
void writeMnist(const std::filesystem::path& directory) {
  const auto pixels = [](int images) {
    std::string all;
    for (int i = 0; i < images; ++i) all += std::string(28 * 28, static_cast<char>(i));
    return all;
  };
  test::writeFile(directory / "train-images-idx3-ubyte", idx({3, 28, 28}, pixels(3)));
  test::writeFile(directory / "train-labels-idx1-ubyte", idx({3}, {'\5', '\0', '\4'}));
  test::writeFile(directory / "t10k-images-idx3-ubyte", idx({2, 28, 28}, pixels(2)));
  test::writeFile(directory / "t10k-labels-idx1-ubyte", idx({2}, {'\7', '\2'}));
}

TEST_CASE("generated images have the wanted numbers, and do not depend on the seed of the order") {
  DataSource source{.type = "generated", .trainExamples = 30, .testExamples = 20};
  const auto digits = namedImages(source);
  CHECK(digits.name == "generated");
  CHECK(digits.title == "generated digits (not MNIST)");
  CHECK(digits.origin == "this program");
  CHECK(digits.notice.empty());
  CHECK(digits.train->size() == 30);
  CHECK(digits.test->size() == 20);
  CHECK(digits.train->imageShape() == Shape{1, 28, 28});
  source.seed = 7;
  CHECK(std::ranges::equal(namedImages(source).train->pixels(), digits.train->pixels()));
  const auto mixtures = namedImages({.type = "mixtures", .trainExamples = 12, .testExamples = 8});
  CHECK(mixtures.name == "mixtures");
  CHECK(std::ranges::equal(mixtures.train->pixels(), gaussianMixtures(20, true, 12)->pixels()));
  CHECK(std::ranges::equal(mixtures.test->pixels(), gaussianMixtures(20, false, 8)->pixels()));
}

TEST_CASE("broken data that are given are refused, and generated digits do not stand in for them") {
  const test::TemporaryDirectory directory;
  writeMnist(directory.path());
  const auto given = directory.path().string();
  const auto refused = [&](const DataSource& source) {
    return thrown<FileError>([&] { namedImages(source); })
        .starts_with((directory / "train-images-idx3-ubyte").string() + ": wrong checksum");
  };
  CHECK(refused({.type = "mnist", .directory = given}));
  CHECK(refused({.type = "mnistOrGenerated", .directory = given}));
  const test::Environment variable("MUSTER_DATA_DIR", given);
  CHECK(refused({.type = "mnistOrGenerated"}));
  CHECK(refused({.type = "mnist"}));
  const std::string longName(256, 'x');
  const test::Environment tooLong("MUSTER_DATA_DIR", longName);
  for (const auto* const type : {"mnist", "mnistOrGenerated", "cifar10"})
    CHECK(thrown<FileError>([&] { namedImages({.type = type}); }) ==
          longName + ": cannot be read: File name too long");
  const auto none = (directory / "none").string();
  CHECK(thrown<FileError>([&] { namedImages({.type = "mnistOrGenerated", .directory = none}); }) ==
        none + ": no such directory, given by data.directory");
}

TEST_CASE("generated digits stand in for MNIST if there is no place to download it to") {
  const test::Environment variable("MUSTER_DATA_DIR", std::nullopt), cache("MUSTER_CACHE_DIR", std::nullopt),
      xdg("XDG_CACHE_HOME", std::nullopt), home("HOME", std::nullopt);
  const DataSource source{.type = "mnistOrGenerated", .trainExamples = 10, .testExamples = 5};
  const auto images = namedImages(source);
  CHECK(images.name == "generated");
  CHECK(images.notice.starts_with("MNIST is not available, so this trains on generated digits ("));
  auto drawn = source;
  drawn.type = "generated";
  CHECK(std::ranges::equal(images.train->pixels(), namedImages(drawn).train->pixels()));
  CHECK_CONTAINS(thrown<InvalidArgument>([] { namedImages({.type = "mnist"}); }), "MUSTER_CACHE_DIR");
}

TEST_CASE("the notice of generated digits says where MNIST was looked for") {
  const test::TemporaryDirectory given, cache;
  const auto nowhere = test::deadAddress();
  const test::Environment address("MUSTER_MNIST_URL", nowhere), direct("no_proxy", "127.0.0.1");
  const auto noticeWith = [](const std::filesystem::path& data, const std::filesystem::path& cached) {
    const test::Environment variable("MUSTER_DATA_DIR", data.string()),
        place("MUSTER_CACHE_DIR", cached.string());
    return namedImages({.type = "mnistOrGenerated", .trainExamples = 10, .testExamples = 5}).notice;
  };
  const std::string start = "MNIST is not available, so this trains on generated digits (",
                    file = "mnist: train-images-idx3-ubyte.gz is ";
  const auto mnist = (cache / "mnist").string();
  const auto notice = noticeWith("", cache.path());
  CHECK(notice.starts_with(start + file + "not in " + mnist));
  CHECK_CONTAINS(notice, "; download: " + nowhere);
  CHECK_CONTAINS(noticeWith(given.path(), cache.path()),
                 file + "neither in " + given.path().string() + " nor in " + mnist);
  test::writeFile(given / "file", "in the way");
  CHECK(noticeWith("", given / "file").starts_with(start + (given / "file").string()));
}

TEST_CASE("the files of published data sets are found, each with what names its place") {
  const test::TemporaryDirectory named, variable, cache;
  const test::Environment given("MUSTER_DATA_DIR", variable.path().string());
  const test::Environment cached("MUSTER_CACHE_DIR", cache.path().string());
  writeMnist(named.path());
  test::writeFile(variable / "test_batch.bin", "");
  test::writeFile(cache / "other", "");
  const auto files = publishedFiles({.type = "mnist", .directory = named.path().string()});
  const auto has = [&](const char* by, const std::filesystem::path& file) {
    return std::ranges::find(files, std::pair(std::string(by), file)) != files.end();
  };
  CHECK(has("data.directory", named / "train-images-idx3-ubyte"));
  CHECK(has("data.directory", named / "t10k-labels-idx1-ubyte"));
  CHECK(has("MUSTER_DATA_DIR", variable / "test_batch.bin"));
  CHECK_FALSE(has("the cache", cache / "other"));
}

}  // namespace
}  // namespace muster
