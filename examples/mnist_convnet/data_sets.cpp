#include "examples/mnist_convnet/data_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "muster/core/base/error.h"
#include "muster/datasets/cache.h"
#include "muster/datasets/generated_digits.h"
#include "muster/datasets/mnist.h"

namespace example {
namespace {

using namespace muster;
using namespace std::chrono_literals;

constexpr std::int64_t kTrainingDigits = 60000;
constexpr std::int64_t kTestDigits = 10000;

std::uint64_t orderSeed(const Options& options) {
  return static_cast<std::uint64_t>(options.seed);
}

template <typename Iterator>
DataSets published(std::string name, std::string title, const Options& options, DataOptions from) {
  from.directory = options.dataDirectory;
  if (options.examples) from.limit = *options.examples;
  DataSets data{.name = std::move(name), .title = std::move(title)};
  data.train = std::make_unique<Iterator>(options.batch, true, orderSeed(options), from);
  data.test = std::make_unique<Iterator>(options.batch, false, orderSeed(options), from);
  data.origin = data.train->set()->origin().parent_path().string();
  return data;
}

DataSets mnist(const Options& options, const DataOptions& from = {}) {
  return published<MnistDataSetIterator>("mnist", "MNIST", options, from);
}

DataSets fashion(const Options& options) {
  auto data = published<FashionMnistDataSetIterator>("fashion", "Fashion-MNIST", options, {});
  data.classNames = FashionMnistDataSetIterator::kClassNames;
  return data;
}

DataSets generated(const Options& options) {
  const auto count = [&](std::int64_t most) { return std::min(most, options.examples.value_or(most)); };
  const GeneratedDigitsIterator train(options.batch, count(kTrainingDigits), kDrawingSeed, true);
  const GeneratedDigitsIterator test(options.batch, count(kTestDigits), kDrawingSeed, false);
  DataSets data{.name = "generated", .title = "generated digits (not MNIST)", .origin = "this program"};
  data.train = std::make_unique<ImageSetIterator>(train.set(), options.batch, orderSeed(options));
  data.test = std::make_unique<ImageSetIterator>(test.set(), options.batch);
  return data;
}

/// Whether an error is about data that the user has provided, and not about the place for downloads.
bool isAboutGivenData(const FileError& error) {
  const auto given = pathFromEnvironment("MUSTER_DATA_DIR").string();
  return !given.empty() && error.path().string().starts_with(given);
}

DataSets mnistOrGenerated(const Options& options) {
  DataOptions from;
  from.download.attempts = 2;  // somebody without a network should not wait long for the other digits
  from.download.connectTimeout = 5000ms;
  std::string reason;
  try {
    return mnist(options, from);
  } catch (const DownloadError& error) {
    reason = error.what();
  } catch (const InvalidArgument& error) {  // there is no place for downloads
    reason = error.what();
  } catch (const FileError& error) {
    if (isAboutGivenData(error)) throw;
    reason = error.what();
  }
  auto data = generated(options);
  data.notice =
      fmt::format("MNIST is not to be had, so this trains on digits that the program draws ({})", reason);
  return data;
}

}  // namespace

DataSets loadData(const Options& options) {
  if (options.data == "generated") return generated(options);
  if (options.data == "fashion") return fashion(options);
  if (options.data == "mnist" || !options.dataDirectory.empty()) return mnist(options);
  return mnistOrGenerated(options);
}

}  // namespace example
