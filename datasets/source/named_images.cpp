#include "muster/datasets/source/named_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/io/input_file.h"
#include "muster/datasets/cache.h"
#include "muster/datasets/cifar10.h"
#include "muster/datasets/gaussian_mixtures.h"
#include "muster/datasets/generated_digits.h"
#include "muster/datasets/kmnist.h"
#include "muster/datasets/mnist.h"
#include "muster/datasets/mnist_format.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kTrainingDigits = 60000, kTestDigits = 10000;
constexpr std::int64_t kTrainingMixtures = 96000, kTestMixtures = 10000;

std::int64_t orAll(std::int64_t wanted, std::int64_t all) {
  return wanted > 0 ? wanted : all;
}

template <typename Iterator>
NamedImages published(std::string name, std::string title, const DataSource& source, DataOptions from) {
  from.directory = source.directory;
  from.allowDownload = from.directory.empty();  // a named directory must contain the files
  from.limit = orAll(source.trainExamples, ImageSetIterator::kAll);
  const auto train = Iterator(source.batch, true, 0, from).set();
  from.limit = orAll(source.testExamples, ImageSetIterator::kAll);
  const auto test = Iterator(source.batch, false, 0, from).set();
  return {.name = std::move(name),
          .title = std::move(title),
          .origin = train->origin().parent_path().string(),
          .train = train,
          .test = test};
}

NamedImages mnist(const DataSource& source, const DataOptions& from) {
  return published<MnistDataSetIterator>("mnist", "MNIST", source, from);
}

NamedImages fashion(const DataSource& source, const DataOptions& from) {
  return published<FashionMnistDataSetIterator>("fashion", "Fashion-MNIST", source, from);
}

NamedImages kmnist(const DataSource& source, const DataOptions& from) {
  return published<KmnistDataSetIterator>("kmnist", "Kuzushiji-MNIST", source, from);
}

NamedImages cifar10(const DataSource& source, const DataOptions& from) {
  return published<Cifar10DataSetIterator>("cifar10", "CIFAR-10", source, from);
}

NamedImages generated(const DataSource& source, const DataOptions&) {
  const auto drawn = [&](std::int64_t wanted, std::int64_t all, bool train) {
    return GeneratedDigitsIterator(source.batch, std::min(all, orAll(wanted, all)), kDrawingSeed, train)
        .set();
  };
  return {.name = "generated",
          .title = "generated digits (not MNIST)",
          .origin = "this program",
          .train = drawn(source.trainExamples, kTrainingDigits, true),
          .test = drawn(source.testExamples, kTestDigits, false)};
}

NamedImages mixtures(const DataSource& source, const DataOptions&) {
  return {.name = "mixtures",
          .title = "Gaussian mixtures",
          .origin = "this program",
          .train = gaussianMixtures(kDrawingSeed, true, orAll(source.trainExamples, kTrainingMixtures)),
          .test = gaussianMixtures(kDrawingSeed, false, orAll(source.testExamples, kTestMixtures))};
}

/// Whether an error is about data in MUSTER_DATA_DIR, and not about the directory for downloads.
bool isAboutGivenData(const FileError& error) {
  const auto given = pathFromEnvironment("MUSTER_DATA_DIR").string();
  return !given.empty() && error.path().string().starts_with(given);
}

NamedImages mnistOrGenerated(const DataSource& source, DataOptions from) {
  if (!source.directory.empty()) return mnist(source, from);
  from.download.attempts = 2;  // without a network, fall back to generated digits soon
  from.download.connectTimeout = 5000ms;
  std::string reason;
  try {
    return mnist(source, from);
  } catch (const DownloadError& error) {
    reason = error.what();
  } catch (const InvalidArgument& error) {  // no directory for downloads is available
    reason = error.what();
  } catch (const FileError& error) {
    if (isAboutGivenData(error)) throw;
    reason = error.what();
  }
  auto images = generated(source, {});
  images.notice = fmt::format("MNIST is not available, so this trains on generated digits ({})", reason);
  return images;
}

/// The directories that a data source, MUSTER_DATA_DIR and the cache name, with the names.
std::vector<std::pair<std::string, std::filesystem::path>> directoriesOf(const DataSource& source) {
  std::vector<std::pair<std::string, std::filesystem::path>> all{
      {"data.directory", source.directory}, {"MUSTER_DATA_DIR", pathFromEnvironment("MUSTER_DATA_DIR")}};
  try {
    all.emplace_back("the cache", cacheDirectory());
  } catch (const InvalidArgument&) {  // no cache is available
  }
  return all;
}

/// The names of all files of these data sets, alone and in their folders.
std::vector<std::filesystem::path> dataFiles() {
  std::vector<std::filesystem::path> all;
  const auto add = [&all](const std::filesystem::path& folder, const std::filesystem::path& packed) {
    for (const auto& name : {packed, packed.stem()}) all.insert(all.end(), {name, folder / name});
  };
  for (const auto& set : mnistFormatSets())
    for (const auto& file : set.files) add(set.name, file.name);
  for (const char* folder : {"cifar-10", "cifar-10-batches-bin"})
    for (const char* file : {"cifar-10-binary.tar.gz", "data_batch_1.bin", "data_batch_2.bin",
                             "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"})
      add(folder, file);
  return all;
}

}  // namespace

std::vector<std::pair<std::string, std::filesystem::path>> publishedFiles(const DataSource& source) {
  std::vector<std::pair<std::string, std::filesystem::path>> all;
  std::error_code unreadable;
  for (const auto& [givenBy, place] : directoriesOf(source))
    for (const auto& file : dataFiles())
      if (!place.empty() && std::filesystem::is_regular_file(place / file, unreadable))
        all.emplace_back(givenBy, place / file);
  return all;
}

NamedImages namedImages(const DataSource& source) {
  if (!source.directory.empty() && fileTypeOf(source.directory) != std::filesystem::file_type::directory)
    throw FileError(source.directory, "no such directory, given by data.directory");
  using Load = NamedImages (*)(const DataSource&, const DataOptions&);
  constexpr std::pair<std::string_view, Load> kRows[] = {{"mnist", mnist},         {"fashion", fashion},
                                                         {"kmnist", kmnist},       {"cifar10", cifar10},
                                                         {"generated", generated}, {"mixtures", mixtures}};
  for (const auto& [name, load] : kRows)
    if (source.type == name) return load(source, {});
  return mnistOrGenerated(source, {});
}

}  // namespace muster
