#include "examples/support/data_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "examples/support/gaussian_mixtures.h"
#include "muster/core/base/error.h"
#include "muster/core/io/input_file.h"
#include "muster/datasets/cache.h"
#include "muster/datasets/cifar10.h"
#include "muster/datasets/generated_digits.h"
#include "muster/datasets/kmnist.h"
#include "muster/datasets/mnist.h"
#include "muster/datasets/mnist_format.h"

namespace example {
namespace {

using namespace muster;
using namespace std::chrono_literals;

constexpr std::int64_t kTrainingDigits = 60000;
constexpr std::int64_t kTestDigits = 10000;

/// The requested data and their order in batches.
struct Request {
  DataChoice choice;
  std::int64_t batch;
  std::uint64_t seed;  // for the order of the examples
};

template <typename Iterator>
DataSets published(std::string name, std::string title, const Request& request, DataOptions from) {
  from.directory = request.choice.directory;
  from.allowDownload = from.directory.empty();  // a named directory must contain the files
  DataSets data{.name = std::move(name), .title = std::move(title)};
  if (const auto limit = request.choice.trainExamples) from.limit = *limit;
  data.train = std::make_unique<Iterator>(request.batch, true, request.seed, from);
  from.limit = request.choice.testExamples.value_or(ImageSetIterator::kAll);
  data.test = std::make_unique<Iterator>(request.batch, false, request.seed, from);
  data.origin = data.train->set()->origin().parent_path().string();
  return data;
}

DataSets mnistFrom(const Request& request, const DataOptions& from) {
  return published<MnistDataSetIterator>("mnist", "MNIST", request, from);
}

DataSets mnist(const Request& request) {
  return mnistFrom(request, {});
}

DataSets fashion(const Request& request) {
  return published<FashionMnistDataSetIterator>("fashion", "Fashion-MNIST", request, {});
}

DataSets kmnist(const Request& request) {
  return published<KmnistDataSetIterator>("kmnist", "Kuzushiji-MNIST", request, {});
}

DataSets cifar10(const Request& request) {
  return published<Cifar10DataSetIterator>("cifar10", "CIFAR-10", request, {});
}

DataSets generated(const Request& request) {
  const auto trainingDigits =
      std::min(kTrainingDigits, request.choice.trainExamples.value_or(kTrainingDigits));
  const auto testDigits = std::min(kTestDigits, request.choice.testExamples.value_or(kTestDigits));
  const GeneratedDigitsIterator train(request.batch, trainingDigits, kDrawingSeed, true);
  const GeneratedDigitsIterator test(request.batch, testDigits, kDrawingSeed, false);
  DataSets data{.name = "generated", .title = "generated digits (not MNIST)", .origin = "this program"};
  data.train = std::make_unique<ImageSetIterator>(train.set(), request.batch, request.seed);
  data.test = std::make_unique<ImageSetIterator>(test.set(), request.batch);
  return data;
}

DataSets mixtures(const Request& request) {
  DataSets data{.name = "mixtures", .title = "Gaussian mixtures", .origin = "this program"};
  const auto training = gaussianMixtures(kDrawingSeed, true, request.choice.trainExamples.value_or(96000));
  const auto test = gaussianMixtures(kDrawingSeed, false, request.choice.testExamples.value_or(10000));
  data.train = std::make_unique<ImageSetIterator>(training, request.batch, request.seed);
  data.test = std::make_unique<ImageSetIterator>(test, request.batch);
  return data;
}

/// Whether an error is about data in MUSTER_DATA_DIR, and not about the directory for downloads.
bool isAboutGivenData(const FileError& error) {
  const auto given = pathFromEnvironment("MUSTER_DATA_DIR").string();
  return !given.empty() && error.path().string().starts_with(given);
}

DataSets mnistOrGenerated(const Request& request) {
  DataOptions from;
  from.download.attempts = 2;  // without a network, fall back to generated digits soon
  from.download.connectTimeout = 5000ms;
  std::string reason;
  try {
    return mnistFrom(request, from);
  } catch (const DownloadError& error) {
    reason = error.what();
  } catch (const InvalidArgument& error) {  // no directory for downloads is available
    reason = error.what();
  } catch (const FileError& error) {
    if (isAboutGivenData(error)) throw;
    reason = error.what();
  }
  auto data = generated(request);
  data.notice = fmt::format("MNIST is not available, so this trains on generated digits ({})", reason);
  return data;
}

/// The directories named by an option, MUSTER_DATA_DIR and the cache, with the names.
std::vector<std::pair<std::string, std::filesystem::path>> dataDirectories(const DataChoice& choice,
                                                                           const std::string& option) {
  std::vector<std::pair<std::string, std::filesystem::path>> all{
      {option, choice.directory}, {"MUSTER_DATA_DIR", pathFromEnvironment("MUSTER_DATA_DIR")}};
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

void DataChoice::addTo(Paths& paths, const std::string& option) const {
  std::error_code unreadable;
  for (const auto& [givenBy, place] : dataDirectories(*this, option))
    for (const auto& file : dataFiles())
      if (!place.empty() && std::filesystem::is_regular_file(place / file, unreadable))
        paths.reads(givenBy, place / file);
}

DataSets loadData(const DataChoice& choice, std::int64_t batch, std::int64_t seed) {
  if (!choice.directory.empty() && fileTypeOf(choice.directory) != std::filesystem::file_type::directory)
    throw FileError(choice.directory, "no such directory, given by data.directory");
  const Request request{choice, batch, static_cast<std::uint64_t>(seed)};
  using Load = DataSets (*)(const Request&);
  constexpr std::pair<std::string_view, Load> kRows[] = {{"mnist", mnist},         {"fashion", fashion},
                                                         {"kmnist", kmnist},       {"cifar10", cifar10},
                                                         {"generated", generated}, {"mixtures", mixtures}};
  for (const auto& [name, load] : kRows)
    if (choice.name == name) return load(request);
  return choice.directory.empty() ? mnistOrGenerated(request) : mnist(request);
}

}  // namespace example
