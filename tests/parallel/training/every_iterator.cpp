#include "tests/parallel/training/every_iterator.h"

#include <random>

#include "muster/core/data/class_weights.h"
#include "muster/core/data/data_loader.h"
#include "muster/core/data/image_transform.h"
#include "muster/core/data/in_memory.h"
#include "muster/core/data/joining_iterator.h"
#include "muster/core/data/prefetch.h"
#include "muster/datasets/cifar10.h"
#include "muster/datasets/csv.h"
#include "muster/datasets/generated_digits.h"
#include "muster/datasets/image_folder.h"
#include "muster/datasets/kmnist.h"
#include "muster/datasets/mnist.h"
#include "muster/datasets/text.h"
#include "tests/datasets/idx_bytes.h"
#include "tests/support/png.h"
#include "tests/support/small_examples.h"

namespace muster::test {
namespace {

constexpr std::int64_t kExamples = 42, kBatch = 4, kFeatures = 5, kClasses = 3, kSteps = 6;
constexpr std::uint64_t kSeed = 9;

/// Random bytes. @param from, to  the smallest and the largest.
std::string randomBytes(std::size_t count, int from = 0, int to = 255) {
  std::mt19937 random(static_cast<unsigned>(count));
  std::uniform_int_distribution<int> byte(from, to);
  std::string bytes(count, '\0');
  for (char& b : bytes) b = static_cast<char>(byte(random));
  return bytes;
}

DataOptions optionsOf(const DataFiles& files) {
  return {.directory = files.directory.path(), .allowDownload = false, .limit = kExamples};
}

Tensor features() {
  Tensor all = Tensor::empty({kExamples, kFeatures});
  for (std::int64_t i = 0; i < all.elements(); ++i)
    all.data<float>()[i] = static_cast<float>((37 * i) % 64) / 32 - 1;
  return all;
}

Tensor classes() {
  Tensor all = Tensor::empty({kExamples}, DType::Int64);
  for (std::int64_t i = 0; i < kExamples; ++i) all.data<std::int64_t>()[i] = i * i % kClasses;
  return all;
}

InMemoryDataSetIterator& rows(DataChain& chain, std::optional<std::uint64_t> seed = kSeed,
                              MemoryPlacement placement = MemoryPlacement::Host) {
  return chain.add<InMemoryDataSetIterator>(features(), classes(), kBatch, seed, placement);
}

GeneratedDigitsIterator& digits(DataChain& chain) {
  return chain.add<GeneratedDigitsIterator>(kBatch, kExamples, kSeed, /*train=*/true);
}

/// A user's data set.
struct Own final : Dataset {
  std::int64_t size() const override { return kExamples; }
  Example get(std::int64_t index) const override {
    Tensor values = Tensor::empty({kFeatures});
    for (std::int64_t i = 0; i < kFeatures; ++i)
      values.data<float>()[i] = static_cast<float>((11 * index + 3 * i) % 32) / 16 - 1;
    return {values, index % kClasses};
  }
};
const Own kOwn;

MultiLayerConfiguration dense(std::int64_t inputs, std::int64_t outputs) {
  return {.seed = 3,
          .updater = Adam{.learningRate = 0.02},
          .inputShape = {inputs},
          .layers = {Dense{.units = 6, .activation = Activation::Tanh}, Dropout{.rate = 0.3},
                     Output{.classes = outputs}}};
}

MultiLayerConfiguration convolving(const Shape& image, std::int64_t outputs) {
  auto network = dense(1, outputs);
  network.inputShape = image;
  network.layers.front() = Conv2d{.outChannels = 2, .kernel = {5, 5}, .stride = {3, 3}};
  return network;
}

std::vector<DataSource> sourcesOfRows() {
  const auto plain = dense(kFeatures, kClasses);
  auto accumulating = plain;
  accumulating.accumulate = 2;
  const std::vector<float> weights{0.5F, 1, 3};
  return {{"in memory, in order", [](auto&, DataChain& c) { rows(c, std::nullopt); }, plain},
          {"in memory, shuffled", [](auto&, DataChain& c) { rows(c); }, plain},
          {"in memory, on the device", [](auto&, DataChain& c) { rows(c, kSeed, MemoryPlacement::Device); },
           plain},
          {"accumulated", [](auto&, DataChain& c) { rows(c); }, accumulating},
          {"joined", [](auto&, DataChain& c) { c.add<JoiningIterator>(rows(c), 3); }, plain},
          {"joined, on the device",
           [](auto&, DataChain& c) { c.add<JoiningIterator>(rows(c, kSeed, MemoryPlacement::Device), 2); },
           plain},
          {"class weights", [=](auto&, DataChain& c) { c.add<ClassWeights>(rows(c), weights); }, plain},
          {"class weights, joined and accumulated",
           [=](auto&, DataChain& c) { c.add<JoiningIterator>(c.add<ClassWeights>(rows(c), weights), 2); },
           accumulating},
          {"prefetched twice",
           [](auto&, DataChain& c) { c.add<PrefetchingIterator>(c.add<PrefetchingIterator>(rows(c), 2), 1); },
           plain},
          {"a data set of the user's", [](auto&, DataChain& c) { c.add<DataLoader>(kOwn, kBatch); }, plain},
          {"a data set of the user's, shuffled, whole batches",
           [](auto&, DataChain& c) {
             c.add<DataLoader>(kOwn, kBatch, DataLoaderOptions{.shuffle = true, .seed = 5, .dropLast = true});
           },
           plain},
          {"an iterator of the user's", [](auto&, DataChain& c) { c.add<SmallExamples>(11); }, dense(6, 4)},
          {"a table",
           [](const DataFiles& files, DataChain& c) {
             const auto table = readCsv(files.directory / "table.csv");
             c.add<InMemoryDataSetIterator>(table.features, table.labels, kBatch, kSeed);
           },
           dense(2, 3)},
          {"a text",
           [](const DataFiles& files, DataChain& c) {
             c.add<CharacterIterator>(files.directory / "text", kSteps, kBatch, kSeed);
           },
           {.seed = 3,
            .updater = Adam{.learningRate = 0.02},
            .inputShape = {kSteps},
            .layers = {Embedding{.vocabulary = 8, .features = 3}, LSTM{.units = 4}, Dropout{.rate = 0.3},
                       Output{.classes = 8, .perStep = true}}}}};
}

std::vector<DataSource> sourcesOfImages() {
  const auto digit = convolving({1, 28, 28}, 10);
  const std::vector<ImageTransform> transforms{RandomCrop{.padding = 2}, RandomFlip{}};
  std::vector<DataSource> sources{
      {"generated digits", [](auto&, DataChain& c) { digits(c); }, digit},
      {"an image set, limited, in order",
       [](auto&, DataChain& c) {
         const auto set = digits(c).set();
         c.add<ImageSetIterator>(set, kBatch, std::nullopt, kExamples - 5);
       },
       digit},
      {"an image set, bytes",
       [](auto&, DataChain& c) {
         const auto set = digits(c).set();
         c.add<ImageSetIterator>(set, kBatch, kSeed).setFeatures(DType::UInt8);
       },
       digit},
      {"an image set, on the device",
       [](auto&, DataChain& c) { digits(c).setPlacement(MemoryPlacement::Device); }, digit},
      {"transformed", [=](auto&, DataChain& c) { c.add<TransformingIterator>(digits(c), transforms, kSeed); },
       digit},
      {"transformed, weighted, joined bytes",
       [=](auto&, DataChain& c) {
         auto& bytes = digits(c);
         bytes.setFeatures(DType::UInt8);
         auto& transformed = c.add<TransformingIterator>(bytes, transforms, kSeed);
         auto& ahead = c.add<PrefetchingIterator>(transformed, 3);
         std::vector<float> weights(10, 1);
         weights[3] = 4;
         c.add<JoiningIterator>(c.add<ClassWeights>(ahead, weights), 2);
       },
       digit},
      {"an image folder",
       [](const DataFiles& files, DataChain& c) {
         c.add<ImageSetIterator>(
             readImageFolder(files.directory / "folder", {.colour = PictureColour::Grey}).images, kBatch,
             kSeed);
       },
       convolving({1, 6, 6}, 2)},
      {"Fashion-MNIST",
       [](const DataFiles& files, DataChain& c) {
         c.add<FashionMnistDataSetIterator>(kBatch, /*train=*/false, kSeed, optionsOf(files));
       },
       digit},
      {"KMNIST",
       [](const DataFiles& files, DataChain& c) {
         c.add<KmnistDataSetIterator>(kBatch, /*train=*/false, kSeed, optionsOf(files));
       },
       digit},
      {"CIFAR-10",
       [](const DataFiles& files, DataChain& c) {
         c.add<Cifar10DataSetIterator>(kBatch, /*train=*/false, kSeed, optionsOf(files));
       },
       convolving({3, 32, 32}, 10)}};
  if (const char* const directory = std::getenv("MUSTER_DATA_DIR"); directory && *directory)
    sources.push_back({"MNIST",
                       [](auto&, DataChain& c) {
                         const DataOptions options{.allowDownload = false, .limit = kExamples};
                         c.add<MnistDataSetIterator>(kBatch, /*train=*/true, kSeed, options);
                       },
                       digit});
  return sources;
}

}  // namespace

DataFiles::DataFiles() {
  writeFile(directory / "text", randomBytes(kExamples * kSteps + 1, 'a', 'h'));
  std::string table = "a,b,class\n";
  for (const char b : randomBytes(kExamples, 0, 8)) table += fmt::format("{},{},{}\n", b % 5, 7 - b, b % 3);
  writeFile(directory / "table.csv", table);
  for (std::size_t i = 0; i < kExamples; ++i) {
    const std::filesystem::path folder = directory / "folder" / (i % 2 == 0 ? "even" : "odd");
    std::filesystem::create_directories(folder);
    std::array<std::uint8_t, 36> pixels{};
    for (std::size_t p = 0; p < pixels.size(); ++p)
      pixels[p] = static_cast<std::uint8_t>(19 * i + (i + 3) * p);
    writePng(folder / fmt::format("{}.png", i), pixels, 6, 6);
  }
  constexpr std::uint32_t kTest = 10'000;
  for (const char* set : {"fashion-mnist", "kmnist"}) {
    std::filesystem::create_directory(directory / set);
    const auto images = directory.path() / set / "t10k-images-idx3-ubyte";
    writeFile(images, idxHead(0x08, {kTest, 28, 28}) + randomBytes(kExamples * 784));
    std::filesystem::resize_file(images, 16 + kTest * 784);
    std::string labels(kTest, '\0');
    for (std::size_t i = 0; i < kTest; ++i) labels[i] = static_cast<char>(i % 10);
    writeFile(directory.path() / set / "t10k-labels-idx1-ubyte", idx({kTest}, labels));
  }
  std::string records;
  for (std::int64_t i = 0; i < kExamples; ++i)
    records += static_cast<char>(i % 10) + randomBytes(static_cast<std::size_t>(3072 - i)) +
               std::string(static_cast<std::size_t>(i), 'x');
  writeFile(directory / "test_batch.bin", records);
  std::filesystem::resize_file(directory / "test_batch.bin", kTest * 3073);
}

std::vector<DataSource> everyIterator() {
  auto sources = sourcesOfRows();
  for (auto& source : sourcesOfImages()) sources.push_back(std::move(source));
  return sources;
}

}  // namespace muster::test
