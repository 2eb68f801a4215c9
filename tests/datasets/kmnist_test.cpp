#include "muster/datasets/kmnist.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/datasets/mnist_format.h"
#include "tests/datasets/gzip.h"
#include "tests/datasets/idx_bytes.h"
#include "tests/support/environment.h"
#include "tests/support/http_server.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using test::contains;
using test::Environment;
using test::HttpReply;
using test::HttpServer;
using test::thrown;

/// An environment without data; downloads come from 127.0.0.1 and are tried once.
struct Sandbox {
  test::TemporaryDirectory directory;
  fs::path cache = directory / "cache", folder = directory / "kmnist";
  Environment data{"MUSTER_DATA_DIR", directory.path().string()};
  Environment cacheVariable{"MUSTER_CACHE_DIR", cache.string()};
  Environment address{"MUSTER_KMNIST_URL", std::nullopt};
  Environment direct{"no_proxy", "127.0.0.1"};
  DataOptions offline{.allowDownload = false}, online{.download = {.attempts = 1}};

  /// `count` images whose first byte counts up, and their labels, as plain files.
  void put(const std::string& prefix, std::uint32_t count, const std::string& labels) const {
    std::string pixels(std::size_t{count} * 784, '\0');
    for (std::size_t i = 0; i < count; ++i) pixels[i * 784] = static_cast<char>(i % 256);
    fs::create_directories(folder);
    test::writeFile(folder / (prefix + "-images-idx3-ubyte"), test::idx({count, 28, 28}, pixels));
    test::writeFile(folder / (prefix + "-labels-idx1-ubyte"),
                    test::idx({static_cast<std::uint32_t>(labels.size())}, labels));
  }
};

/// `count` labels, each class in turn.
std::string labelsInTurn(std::size_t count) {
  std::string labels(count, '\0');
  for (std::size_t i = 0; i < count; ++i) labels[i] = static_cast<char>(i % 10);
  return labels;
}

TEST_CASE("plain files of the published sizes are read, with the test images in the order of the file") {
  const Sandbox sandbox;
  sandbox.put("t10k", 10000, labelsInTurn(10000));
  KmnistDataSetIterator data(4, false, 1, sandbox.offline);
  CHECK(data.examples() == 10000);
  CHECK(data.description()->classes ==
        std::vector<std::string>{"o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"});
  Batch batch;
  data.reset(1);
  REQUIRE(data.next(batch));
  CHECK(batch.features.front().value.shape() == Shape{4, 1, 28, 28});
  CHECK(batch.features.front().value.span<float>()[3 * 784] == 3.0f / 255.0f);
  const auto labels = batch.labels.front().value.span<std::int64_t>();
  CHECK(std::vector<std::int64_t>(labels.begin(), labels.end()) == std::vector<std::int64_t>{0, 1, 2, 3});
}

TEST_CASE("KMNIST's training images are shuffled by seed and epoch") {
  const Sandbox sandbox;
  sandbox.put("train", 60000, labelsInTurn(60000));
  KmnistDataSetIterator data(1000, true, 1, sandbox.offline);
  CHECK(data.examples() == 60000);
  const auto labelsOf = [&](std::int64_t epoch) {
    Batch batch;
    data.reset(epoch);
    data.next(batch);
    const auto labels = batch.labels.front().value.span<std::int64_t>();
    return std::vector<std::int64_t>(labels.begin(), labels.end());
  };
  CHECK(labelsOf(0) == labelsOf(0));
  CHECK(labelsOf(0) != labelsOf(1));
}

TEST_CASE("unexpected counts and labels out of range are refused") {
  const Sandbox sandbox;
  const auto refusal = [&](bool train) {
    return thrown<FileError>([&] { KmnistDataSetIterator(4, train, 1, sandbox.offline); });
  };
  sandbox.put("train", 10, labelsInTurn(10));
  CHECK(contains(refusal(true), "kmnist has images [60000, 28, 28], but the file holds [10, 28, 28]"));
  auto labels = labelsInTurn(10000);
  labels[1234] = '\x0A';
  sandbox.put("t10k", 10000, labels);
  CHECK(contains(refusal(false), "label 10 of example 1234"));
  sandbox.put("t10k", 10000, labelsInTurn(9999));
  CHECK(contains(refusal(false), "9999 labels"));
}

TEST_CASE("each compressed file is refused if its checksum is not the published one") {
  const Sandbox sandbox;
  fs::create_directories(sandbox.folder);
  const auto refusal = [&](bool train, const std::string& name) {
    test::writeFile(sandbox.folder / name, test::gzip("forged"));
    const auto text = thrown<FileError>([&] { KmnistDataSetIterator(4, train, 1, sandbox.offline); });
    CHECK(contains(text, name));
    fs::remove(sandbox.folder / name);
    return text;
  };
  CHECK(contains(refusal(true, "train-images-idx3-ubyte.gz"), "bdb82020997e1d708af4cf47b453dcf7"));
  CHECK(contains(refusal(false, "t10k-images-idx3-ubyte.gz"), "5c965bf0a639b31b8f53240b1b52f4d7"));
  // Labels are read after images that are accepted.
  sandbox.put("train", 60000, "");
  CHECK(contains(refusal(true, "train-labels-idx1-ubyte.gz"), "e144d726b3acfaa3e44228e80efcd344"));
  sandbox.put("t10k", 10000, "");
  CHECK(contains(refusal(false, "t10k-labels-idx1-ubyte.gz"), "7320c461ea6c1c855c0b718fb2a4b134"));
}

TEST_CASE("a download uses MUSTER_KMNIST_URL, is checked, and not kept if it is wrong") {
  const Sandbox sandbox;
  std::vector<std::string> asked;
  HttpServer server([&](const std::string& path, int) {
    asked.push_back(path);
    return HttpReply::whole(test::gzip(test::idx({10000, 28, 28}, std::string(7840000, 'x'))));
  });
  const Environment mirror("MUSTER_KMNIST_URL", server.address() + "mirror");
  const auto text = thrown<DownloadError>([&] { KmnistDataSetIterator(4, false, 1, sandbox.online); });
  CHECK(asked == std::vector<std::string>{"/mirror/t10k-images-idx3-ubyte.gz"});
  CHECK(contains(text, "5c965bf0a639b31b8f53240b1b52f4d7"));
  CHECK_FALSE(fs::exists(sandbox.cache / "kmnist/t10k-images-idx3-ubyte.gz"));
}

TEST_CASE("without the files the error names the published address") {
  const Sandbox sandbox;
  CHECK(contains(thrown<DownloadError>([&] { KmnistDataSetIterator(4, true, 1, sandbox.offline); }),
                 "https://codh.rois.ac.jp/kmnist/dataset/kmnist/train-images-idx3-ubyte.gz"));
}

TEST_CASE("the list of data sets in MNIST's format has KMNIST's checksums") {
  const auto sets = mnistFormatSets();
  const auto kmnist = std::ranges::find(sets, "kmnist", &PublishedSet::name);
  REQUIRE(kmnist != sets.end());
  CHECK(kmnist->files.data() == KmnistDataSetIterator::kPublished.files.data());
  CHECK(std::ranges::find(sets, "mnist", &PublishedSet::name) != sets.end());
  CHECK(std::ranges::find(sets, "fashion-mnist", &PublishedSet::name) != sets.end());
}

TEST_CASE("MNIST's files are not accepted as KMNIST") {
  const char* directory = test::realDataDir();
  if (!directory) return test::skip("MUSTER_DATA_DIR, the directory of the real MNIST, is not set");
  DataOptions options{.directory = directory, .allowDownload = false};
  const Sandbox sandbox;
  CHECK(contains(thrown<DownloadError>([&] { KmnistDataSetIterator(4, false, 1, options); }), "kmnist"));
}

}  // namespace
}  // namespace muster
